"""No secret is left in a text, in whatever spelling it came back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.masking import HIDDEN, Masks

KEY = "-----BEGIN KEY-----\nMIIEvQIBADAN\nab\n-----END KEY-----"


@pytest.mark.parametrize(
    ("secrets", "text", "hidden"),
    [
        ([], "nothing to hide", "nothing to hide"),
        ([""], "nothing to hide", "nothing to hide"),
        (["hunter2"], "401: hunter2 is wrong, hunter2!", "401: *** is wrong, ***!"),
        (["a/b c"], "GET /x?t=a%2Fb%20c&u=a%2Fb+c", "GET /x?t=***&u=***"),
        (['a"b'], '{"token": "a\\"b"}', '{"token": "***"}'),
        (["abc", "abcdef"], "abcdef abc", "*** ***"),
        ([KEY], "bad key: MIIEvQIBADAN ab", "bad key: *** ab"),
        ([KEY], KEY, HIDDEN),
    ],
)
def test_secrets_are_hidden(secrets: list[str], text: str, hidden: str) -> None:
    assert Masks(secrets).hide(text) == hidden
    assert Masks(secrets).found_in(text) is (hidden != text)


@pytest.mark.parametrize(
    ("text", "held"),
    [("", 0), ("no", 0), ("see: hunt", 4), ("see: hunter", 6), ("hunter2", 0), ("h", 1), ("hunhun", 3)],
)
def test_the_beginning_of_a_secret_is_seen(text: str, held: int) -> None:
    assert Masks(["hunter2"]).unfinished(text) == held


@given(st.text(min_size=1), st.text(), st.text(), st.data())
def test_a_text_that_comes_in_pieces_never_shows_the_secret(
    secret: str, before: str, after: str, data: st.DataObject
) -> None:
    masks, text = Masks([secret]), before + secret + after
    shown, at = "", 0
    while at < len(text):
        end = data.draw(st.integers(at + 1, len(text)))
        piece = text[at:end]
        kept = piece if end == len(text) else piece[: len(piece) - masks.unfinished(piece)]
        if not kept:
            kept, at = text[at:], len(text)
        else:
            at += len(kept)
        shown += masks.hide(kept)
    assert secret not in shown.replace(HIDDEN, "") or secret in HIDDEN or secret in (before + after)
