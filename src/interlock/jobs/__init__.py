"""One module or folder per target: how a job is started, found again after a crash, and asked how it is.

Each implements the `JobRunner` port and nothing else: no target decides whether a job may start, how often it is tried
or what its end means for the run. A vendor's errors are translated here, into `JobStartError` or a `JobStatus`. What
several targets need lies beside them: `configs` reads a job's config, `addresses` guards every HTTP connection, `rest`
calls JSON APIs through it, and `output` cuts texts into pieces. `registry` lists the targets; `secrets` stands before
each of them.
"""
