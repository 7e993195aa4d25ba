"""The audit trail of a store: records in a chain of hashes, a chain a day, the days linked to each other.

`chain` appends within the transaction of the change that is recorded, `trail` reads and drops old days, `verify` finds
what was altered or removed.
"""
