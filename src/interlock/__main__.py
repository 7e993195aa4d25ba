"""The `interlock` command, also as `python -m interlock`."""

import gc
import sys

from interlock import __version__


def main() -> None:
    """Run a command. The version is printed without loading any: scripts ask for it."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"interlock {__version__}\n")
        return
    # Loading makes many objects and no garbage: a collector that looks through them again and again is a tenth of it.
    gc.disable()
    from interlock.cli.main import main as run

    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
