"""No secret is left in a text, in whatever spelling it came back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.masking import HIDDEN, Masks, hide_in_addresses, holds_hidden

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
        # A line of eight characters or more is a secret of its own.
        (["first\n12345678\n1234567"], "12345678 1234567", "*** 1234567"),
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


@pytest.mark.parametrize(
    ("secret", "text", "held"),
    [
        (":%", "0:%", 2),  # its end may be the beginning of its percent-encoded spelling, %3A%25
        ("aXa", "see: aXa", 3),
        ("aXa", "see: aXa.", 0),
        ("aXa", "aXa aX", 2),
        # Of several beginnings the longest.
        ("aXaY", "see: aXa", 3),
    ],
)
def test_a_whole_secret_is_not_shown_up_to_where_another_may_begin(secret: str, text: str, held: int) -> None:
    assert Masks([secret]).unfinished(text) == held


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing to hide: a=b?c=d", "nothing to hide: a=b?c=d"),
        ("https://host/path", "https://host/path"),
        ("https://ana:hunter2@host/path", f"https://ana:{HIDDEN}@host/path"),
        ("https://token@host/", f"https://{HIDDEN}@host/"),
        ("https://host/x?key=hunter2&day=5", f"https://host/x?key={HIDDEN}&day={HIDDEN}"),
        ("https://ana:${INTERLOCK_SECRET_X}@host/", "https://ana:${INTERLOCK_SECRET_X}@host/"),
        ("https://host/x?day=${DATE}${HOUR}&k=", "https://host/x?day=${DATE}${HOUR}&k="),
        ("https://host/x?day=${DATE}-5", f"https://host/x?day={HIDDEN}"),
        ("--db=postgresql://me:hunter2@db/x --day 1", f"--db=postgresql://me:{HIDDEN}@db/x --day 1"),
        ("mail me@example.com?x=1", "mail me@example.com?x=1"),
        ("curl https://a:b@c/d https://e:f@g/h", f"curl https://a:{HIDDEN}@c/d https://e:{HIDDEN}@g/h"),
    ],
)
def test_what_is_secret_in_an_address_is_hidden_and_templates_stay(text: str, shown: str) -> None:
    assert hide_in_addresses(text) == shown
    assert holds_hidden(shown) is (shown != text)


@pytest.mark.parametrize(
    ("text", "held"), [(HIDDEN, True), (f"a {HIDDEN}", False), (f"key={HIDDEN}", False), ("", False)]
)
def test_a_text_without_an_address_holds_what_is_hidden_only_as_a_whole(text: str, held: bool) -> None:
    assert holds_hidden(text) is held
