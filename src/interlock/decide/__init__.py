"""The decisions: pure functions of (facts, now). Each returns what it decided and why, in words a person can act on.

Nothing here reads a clock, a file, a store or the network, and nothing here changes anything.
"""
