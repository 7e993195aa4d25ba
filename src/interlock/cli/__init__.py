"""The command line: one module per command, registered in `main`. Heavy imports are made inside a command."""
