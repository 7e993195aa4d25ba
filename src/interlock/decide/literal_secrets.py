"""Secrets written into a config as they are: found, so that a person is warned, and hidden in what comes back.

Two questions. Does a value look like a secret (`find_literals`)? Few false alarms: a name such as `password`, a URL
with one in it, an option such as `--token x`, or a text that only a key has the form of. And what of a job's config
must not be read in an error that repeats it (`echoes`)? Everything that is not shown of it (`shown_configs`), unless it
is so short that it might be found anywhere. Of a command that is only what looks like a secret: its arguments are what
its errors are about.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from interlock.decide.shown_configs import SHOWN_KEYS

Path = tuple[str | int, ...]

_WORDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
    "cookie",
)
# What such a word is only a part of: where a secret is, not what it is.
_ABOUT: Final = ("url", "uri", "path", "file", "arn", "name", "id", "env", "type", "header", "endpoint", "count", "ttl")
_KNOWN_FORMS: Final = (
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), "an AWS access key"),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"), "a private key"),
    (re.compile(r"(?i)\b(?:bearer|basic) +[A-Za-z0-9._~+/=-]{12,}"), "a bearer token or a password"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"), "a signed token"),
    (re.compile(r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{30,}\b|\bgithub_pat_\w{30,}"), "a token of GitHub"),
    (re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"), "a token of Slack"),
    (re.compile(r"\bhooks\.slack\.com/services/\w+/\w+/\w+"), "a webhook of Slack"),
    (re.compile(r"\b(?:sk|rk)_live_[A-Za-z0-9]{16,}"), "a key of Stripe"),
    (re.compile(r"\bdapi[0-9a-f]{32}\b"), "a token of Databricks"),
    (re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"), "a key of Google"),
    (re.compile(r"\bilk_[A-Za-z0-9_-]{20,}"), "a token of Interlock"),
)
_USER: Final = re.compile(r"://([^/?#@\s:]*):([^/?#@\s]+)@")
_QUERY: Final = re.compile(r"[?&]([^=&\s#]+)=([^&\s#]+)")
_OPTION: Final = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
_SHORTEST_NAMED: Final = 3
_SHORTEST_ECHO: Final = 8
_REFERENCE: Final = "${"
_EVERYDAY: Final = re.compile(r"(?i)(?:application|text|image)/[\w.+-]+(?:;.*)?|gzip.*|\d{4}-[\d-]+")


def find_literals(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Where something looks like a secret, and as what; each place once."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from find_literals(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        after = _option_values(value)
        for number, inner in enumerate(value):
            if number in after and isinstance(inner, str) and _is_literal(inner):
                yield (*path, number), f"the value of {value[number - 1]}"
            else:
                yield from find_literals(inner, (*path, number))
    elif isinstance(value, str) and (what := _looks_like(value, _name(path))):
        yield path, what


def _looks_like(text: str, name: str) -> str:
    for form, what in _KNOWN_FORMS:
        if form.search(text):
            return what
    if any(_is_literal(password) for _, password in _USER.findall(text)):
        return "a password in an address"
    if "://" in text and any(is_secret_name(key) and _is_literal(value) for key, value in _QUERY.findall(text)):
        return "a secret in the query of an address"
    for word in text.split():
        option = _OPTION.fullmatch(word)
        if option is not None and option[2] and is_secret_name(option[1]) and _is_literal(option[2]):
            return f"the value of --{option[1]}"
    if is_secret_name(name) and _is_literal(text) and "://" not in text:
        return f"the value of {name}"
    return ""


def _is_literal(text: str) -> bool:
    return _REFERENCE not in text and len(text.strip()) >= _SHORTEST_NAMED and text.strip("*xX.<>") != ""


def is_secret_name(name: str) -> bool:
    """Is what stands under this name a secret, by the name?"""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return any(word in plain for word in _WORDS) and not plain.endswith(_ABOUT)


def _name(path: Path) -> str:
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _option_values(words: Sequence[Any]) -> set[int]:
    """Which words follow an option such as `--password`."""
    found: set[int] = set()
    for number, word in enumerate(words[:-1]):
        option = _OPTION.fullmatch(word) if isinstance(word, str) else None
        follows = words[number + 1]
        if option is not None and option[2] is None and is_secret_name(option[1]) and isinstance(follows, str):
            found |= {number + 1} if not follows.startswith("-") else set()
    return found


# -------------------------------------------------------------------------------------------------- what comes back


def echoes(config: Mapping[str, Any], own: Iterable[str] = ()) -> set[str]:
    """Values of a job's config to hide in what its target says. `own` are those of the run, which everybody knows."""
    known = set(own)
    found: set[str] = set()
    for path, text in _texts(config, ()):
        if path[0] in ("command", "env"):
            continue
        if ".".join(step for step in path if isinstance(step, str)) not in SHOWN_KEYS and not _EVERYDAY.fullmatch(text):
            found |= {text} if len(text) >= _SHORTEST_ECHO else set()
    return {one for one in found | literal_values(config) if one not in known and _REFERENCE not in one}


def literal_values(config: Mapping[str, Any]) -> set[str]:
    """What looks like a secret in a config, as it would come back."""
    found = {part for _, text in _texts(config, ()) for part in _parts_of_addresses(text)}
    for path, _ in find_literals(config):
        found |= _secrets_at(config, path)
    return {one for one in found if _REFERENCE not in one}


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _texts(inner, (*path, number))
    elif type(value) is str:
        yield path, value


def _parts_of_addresses(text: str) -> set[str]:
    if "://" not in text:
        return set()
    passwords = {password for _, password in _USER.findall(text)}
    values = {value for key, value in _QUERY.findall(text) if is_secret_name(key)}
    return {spelling for one in passwords | values for spelling in (one, unquote(one)) if len(one) >= _SHORTEST_NAMED}


def _secrets_at(config: Mapping[str, Any], path: Path) -> set[str]:
    """The text at a path; of an option, what follows it; of a known form in a longer text, that alone."""
    value: Any = config
    for step in path:
        value = value[step]
    if type(value) is not str:
        return set()
    forms = {found[0] for form, _ in _KNOWN_FORMS for found in form.finditer(value)}
    options = {
        option[2]
        for word in value.split()
        if (option := _OPTION.fullmatch(word)) is not None and option[2] and is_secret_name(option[1])
    }
    if forms or options:
        # A scheme in front says nothing: `Bearer abc` comes back as `abc`, too.
        return {one.split()[-1] if " " in one and "PRIVATE" not in one else one for one in forms | options}
    return set() if "://" in value else {value}
