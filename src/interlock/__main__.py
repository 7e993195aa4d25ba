"""The `interlock` command, also as `python -m interlock`."""

import sys

from interlock import __version__


def main() -> None:
    """Run a command. The version is told without loading any: scripts ask for it."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"interlock {__version__}\n")
        return
    from interlock.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
