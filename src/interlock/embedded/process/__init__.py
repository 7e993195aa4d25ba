"""The controller as a process of its machine: where it listens, what it logs, how it ends."""
