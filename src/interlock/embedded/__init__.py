"""The embedded runtime: one process, one SQLite file, no other service.

Here live the adapters of the ports to SQLite, threads and the real clock, and what drives them. No decision is taken
here: those are in `decide`, and the six functions that use them in `control`.
"""
