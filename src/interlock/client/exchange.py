"""One request and its answer: sent again where that is allowed, decoded, or an error that says what was wrong."""

from typing import Any, Final, Generic, TypeVar

import msgspec

from interlock.client.errors import ConnectionFailedError, UnreadableAnswerError, refusal
from interlock.client.retries import after_answer, after_no_answer
from interlock.client.settings import Settings
from interlock.client.steps import Came, Flow, NoAnswer, Pause, Reply, Send

T = TypeVar("T")

_PAGE: Final = 200


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some of a list; `next` is the cursor of the following page."""

    items: list[T]
    next: str | int | None = None


class Exchange:
    """Flows of single requests, by the settings of a client."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def call(self, request: Send, answer: type[T], *, repeatable: bool = True) -> Flow[T]:
        """Send a request and decode its answer. `repeatable`: done twice it is the same as done once."""
        reply = yield from self._sent(request, repeatable=repeatable)
        return self.decoded(request.path, reply.body, answer)

    def reply(self, request: Send) -> Flow[Reply]:
        """Send a request whose answer is no JSON."""
        return (yield from self._sent(request, repeatable=True))

    def done(self, request: Send, *, repeatable: bool = True) -> Flow[None]:
        """Send a request whose answer says nothing but that it was carried out."""
        yield from self._sent(request, repeatable=repeatable)

    def pages(self, request: Send, item: type[T], limit: int | None) -> Flow[list[T]]:
        """The items of a list, page after page, up to a limit."""
        found: list[T] = []
        cursor: str | int | None = None
        while limit is None or len(found) < limit:
            wanted = _PAGE if limit is None else min(_PAGE, limit - len(found))
            params = {**request.params, "limit": str(wanted), **({"cursor": str(cursor)} if cursor else {})}
            page_type: Any = Page[item]  # type: ignore[valid-type]  # a page of whatever the caller asked for
            page = yield from self.call(msgspec.structs.replace(request, params=params), page_type)
            found += page.items
            cursor = page.next
            if cursor is None:
                break
        return found[:limit]

    def _sent(self, request: Send, *, repeatable: bool) -> Flow[Reply]:
        failures = 0
        while True:
            came = yield request
            if isinstance(came, Reply) and (came.status < 400 or (failures and _is_gone(request, came))):
                return came
            failures += 1
            wait = self._wait_after(came, failures, repeatable=repeatable)
            if wait is None:
                raise self.failure(came)
            yield Pause(wait)

    def _wait_after(self, came: Came, failures: int, *, repeatable: bool) -> float | None:
        policy, chance = self._settings.retry, self._settings.random()
        if isinstance(came, NoAnswer):
            return after_no_answer(policy, came.fate, failures, repeatable=repeatable, chance=chance)
        if isinstance(came, Reply):
            return after_answer(policy, came.status, came.headers, failures, repeatable=repeatable, chance=chance)
        raise TypeError(f"a shell answered a request with {came!r}")

    def failure(self, came: Came) -> Exception:
        """The error of an answer that is none, or of silence."""
        url = self._settings.url
        if isinstance(came, Reply):
            return refusal(came.status, came.body, url)
        reason = came.reason if isinstance(came, NoAnswer) else "the connection ended"
        return ConnectionFailedError(
            f"{url} does not answer ({reason}): is the server running (`interlock serve`), and is this its address?"
        )

    def decoded(self, where: str, body: bytes, answer: type[T]) -> T:
        """The answer as a value."""
        try:
            return msgspec.json.decode(body, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableAnswerError(
                f"{self._settings.url}{where} answered something else than expected ({error}): "
                "is that an Interlock server, and of about this version?"
            ) from error


def _is_gone(request: Send, came: Reply) -> bool:
    """What is deleted a second time, since the first answer was lost, is not found: that is what was wanted."""
    return request.method == "DELETE" and came.status == 404
