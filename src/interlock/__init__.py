"""Interlock: the safety controller between "it is time" and "it is safe"."""

# As good as typing's own for a type checker, and `import interlock` loads nothing at all.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.client import AsyncClient, Client

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "__version__"]


def __dir__() -> list[str]:
    """What is loaded only when it is asked for is there all the same: for completion and `help`."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """The SDK is loaded when somebody asks for it: everything else of the program imports this package too."""
    if name in ("Client", "AsyncClient"):
        from interlock import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
