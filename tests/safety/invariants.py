"""The nine safety properties (SPEC 5) as one question to a played world: what was violated, in words.

    assert violations(play(scenario).world) == []

Each property is a function of its own (in `acts` and `words`), so that a test can ask for one of them. They are judged
from what is left behind: the events in commit order, the store, and what the scripted targets saw.
"""

from collections.abc import Callable, Iterator
from typing import Final

from interlock.simulation.world import World
from tests.safety.acts import everything_ends, nothing_withheld, one_at_a_time, rules_first, within_budget
from tests.safety.ledger import Ledger
from tests.safety.words import alerts_once, events_with_changes, every_write_considered, nothing_silent

PROPERTIES: Final[dict[int, Callable[[Ledger], Iterator[str]]]] = {
    1: rules_first,
    2: one_at_a_time,
    3: nothing_withheld,
    4: everything_ends,
    5: every_write_considered,
    6: within_budget,
    7: alerts_once,
    8: events_with_changes,
    9: nothing_silent,
}


def violations(world: World) -> list[str]:
    """Everything that a played world did against the nine properties; empty when it kept them."""
    world._pump()  # a scenario may end just before the stream is read
    ledger = Ledger(world)
    return [f"{number}. {text}" for number, check in PROPERTIES.items() for text in check(ledger)]
