"""The names that an error suggests are read from the store, so before it is closed."""

from collections.abc import Iterator
from contextlib import contextmanager

from interlock.model.errors import UnknownPipelineError


@contextmanager
def nearest_names() -> Iterator[None]:
    """While a store is open: an unknown pipeline's error reads the nearest names when it is first shown."""
    try:
        yield
    except UnknownPipelineError as error:
        str(error)  # now, not after the store has been closed
        raise
