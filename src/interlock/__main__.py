"""`python -m interlock`: the same as the `interlock` command."""

from interlock.cli.main import main

main()
