"""Sign-on: tokens of an OpenID Connect issuer on loopback, with a real `serve`, and the ways to forge one."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from interlock.embedded.access.oidc_keys import OidcKeys, parse_keys
from interlock.embedded.access.sign_on import Grant, OidcRefusedError, OidcSettings, SignOn, values_of
from interlock.embedded.access.tokens import Scope
from interlock.embedded.clock import SystemClock
from interlock.model.errors import InterlockError
from tests.api.running import WAIT, Process, pipeline, problem, serving, until
from tests.security.commands import interlock, refused
from tests.security.issuer import Issuer, public

V1 = "/api/v1"
_GRANTS = """
[[oidc.grants]]
claim = "groups"
value = "platform"
scopes = ["admin"]

[[oidc.grants]]
claim = "realm.roles"
value = "writer"
scopes = ["read", "sensor:write"]
owners_claim = "team"

[[oidc.grants]]
claim = "scope"
value = "interlock.read"
scopes = ["read"]
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer().running() as found:
        yield found


def settings_of(issuer: Issuer, more: str = "") -> str:
    return f'[oidc]\nissuer = "{issuer.url}"\naudience = "interlock"\n{more}\n{_GRANTS}'


@pytest.fixture(scope="module")
def server(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "interlock.toml").write_text(settings_of(issuer))
    state = {"XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}
    with serving(folder, environment=state) as process:
        until(lambda: "keys of the OIDC issuer" in process.log.read_text() or None, "the first keys")
        for name in ("gold", "silver"):
            done = process.client.put(
                f"{V1}/pipelines/{name}",
                json=pipeline(name, pipeline={"id": name, "owner": "sales" if name == "silver" else "analytics"}),
                headers=bearer(issuer.token()),
            )
            assert done.status_code == 201, done.text
        yield process


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_of_the_issuer_signs_on_under_its_subject(server: Process, issuer: Issuer) -> None:
    problem(server.client.get(f"{V1}/pipelines"), 401, "unauthorized")
    me = server.client.get(f"{V1}/session", headers=bearer(issuer.token())).json()
    assert (me["name"], me["scopes"], me["required"]) == ("oidc:alice@example.com", list(Scope), True)
    written = server.client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 3}, headers=bearer(issuer.token()))
    assert written.status_code == 200, written.text
    rerun = {"date": "2026-03-02", "reason": "by hand"}
    assert server.client.post(f"{V1}/pipelines/gold/reruns", json=rerun, headers=bearer(issuer.token())).is_success

    def told() -> bool:
        events = server.client.get(f"{V1}/events", params={"pipeline": "gold"}, headers=bearer(issuer.token()))
        return "oidc:alice@example.com" in events.text

    until(lambda: told() or None, "an event that names who asked")
    asked = server.client.get(f"{V1}/audit?action=rerun-requested", headers=bearer(issuer.token())).json()["items"]
    assert asked[0]["actor"] == {"kind": "sign-on", "name": "oidc:alice@example.com", "address": "127.0.0.1"}
    assert issuer.token().split(".")[2] not in server.log.read_text()


def test_grants_limit_what_a_token_may(server: Process, issuer: Issuer) -> None:
    writer = bearer(issuer.token(groups=None, realm={"roles": ["writer"]}, team="analytics", sub="etl"))
    put = {"json": {"count": 1}, "headers": writer}
    assert server.client.put(f"{V1}/pipelines/gold/sensors/rows", **put).status_code == 200  # type: ignore[arg-type]
    problem(server.client.put(f"{V1}/pipelines/silver/sensors/rows", **put), 403, "forbidden")  # type: ignore[arg-type]
    listed = server.client.get(f"{V1}/pipelines", headers=writer).json()["items"]
    assert [one["id"] for one in listed] == ["gold"]
    # Whoever should be limited by a claim and has none gets nothing.
    bare = server.client.get(f"{V1}/pipelines", headers=bearer(issuer.token(groups=None, realm={"roles": ["writer"]})))
    assert "none of the grants" in problem(bare, 401, "unauthorized")["detail"]
    reader = bearer(issuer.token(groups=None, scope="openid interlock.read"))
    assert server.client.get(f"{V1}/pipelines/silver", headers=reader).status_code == 200
    problem(server.client.put(f"{V1}/pipelines/gold/sensors/rows", json={}, headers=reader), 403, "forbidden")
    problem(server.client.post(f"{V1}/session/code", headers=reader), 403, "forbidden")


def test_our_own_tokens_still_count(server: Process) -> None:
    token = interlock(server.folder, "token", "create", "--name", "etl", "--scope", "read").stdout.strip()
    until(lambda: server.client.get(f"{V1}/pipelines", headers=bearer(token)).is_success or None, "the token")


def forged(issuer: Issuer) -> dict[str, tuple[str, str]]:
    """Tokens that must not count, and the word that says why."""
    now = SystemClock().now()
    stranger = Issuer()
    stranger.url = issuer.url
    head, claims, signature = issuer.token().split(".")
    key = issuer.keys["one"].public_key()
    pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {
        "expired": (issuer.token(exp=now - timedelta(minutes=5)), "has expired"),
        "without an end": (issuer.token(exp=None), "exp"),
        "not in force": (issuer.token(nbf=now + timedelta(minutes=5)), "not in force"),
        "another audience": (issuer.token(aud="billing"), "another audience"),
        "no audience": (issuer.token(aud=None), "aud"),
        "another issuer": (issuer.token(iss="https://evil.example"), "another issuer"),
        "another key of the same name": (stranger.token(), "signature"),
        "changed": (f"{head}.{part({**decoded(claims), 'sub': 'root'})}.{signature}", "signature"),
        "none": (f"{part({'alg': 'none', 'kid': 'one'})}.{claims}.", "not allowed"),
        "None": (f"{part({'alg': 'None', 'kid': 'one'})}.{claims}.{signature}", "not allowed"),
        "the public key as a secret": (hs256(claims, pem), "not allowed"),
        "another algorithm": (f"{part({'alg': 'ES256', 'kid': 'one'})}.{claims}.{signature}", "does not fit"),
        "nobody": (issuer.token(sub=""), "names nobody"),
        "a subject with an escape": (issuer.token(sub="a\x1b[31m"), "names nobody"),
        "no grant": (issuer.token(groups=["guests"]), "none of the grants"),
        "no text": ("a.b.c", "cannot be read"),
        "its key in its head": (
            issuer.token(head={"kid": "own", "jwk": public(stranger.keys["one"])}),
            "no key",
        ),
    }


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def decoded(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def hs256(claims: str, secret: bytes) -> str:
    signed = f"{part({'alg': 'HS256', 'kid': 'one', 'typ': 'JWT'})}.{claims}"
    digest = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def test_forged_and_foreign_tokens_are_refused(server: Process, issuer: Issuer) -> None:
    for name, (token, word) in forged(issuer).items():
        response = server.client.get(f"{V1}/pipelines", headers=bearer(token))
        assert word in problem(response, 401, "unauthorized")["detail"], name
    # The short way of writes refuses them, too.
    write = server.client.put(f"{V1}/pipelines/gold/sensors/rows", json={}, headers=bearer(forged(issuer)["none"][0]))
    problem(write, 401, "unauthorized")


def test_a_stream_ends_with_its_token(server: Process, issuer: Issuer) -> None:
    soon = SystemClock().now() - timedelta(seconds=57)  # what clocks may differ by is a minute
    with server.client.stream("GET", f"{V1}/events/stream", headers=bearer(issuer.token(exp=soon))) as stream:
        assert stream.status_code == 200
        for _ in stream.iter_lines():
            pass


def test_rotation_and_an_issuer_that_is_down(tmp_path: Path) -> None:
    with Issuer().running() as issuer:
        (tmp_path / "interlock.toml").write_text(settings_of(issuer))
        with serving(tmp_path) as server:

            def status(token: str, key: str = "rows") -> int:
                path = f"{V1}/pipelines/gold/sensors/{key}"
                return server.client.put(path, json={"count": 1}, headers=bearer(token)).status_code

            applied = server.client.put(f"{V1}/pipelines/gold", json=pipeline("gold"), headers=bearer(issuer.token()))
            assert applied.status_code == 201, applied.text
            old = issuer.token()
            assert status(old) == 200
            issuer.rotate("two", keep=True)
            assert status(issuer.token()) == 200, "the new key is fetched when it is first seen"
            issuer.answers = False
            asked = issuer.asked
            for _ in range(20):
                assert status(old) == 200
                assert status(issuer.token(head={"kid": "made-up"})) in (401, 429)
            # Those who make up names of keys do not have the issuer asked again and again.
            assert issuer.asked - asked <= 4
            assert server.client.get("/readyz").json()["ready"] is True


def test_an_unknown_key_is_fetched_at_once_and_a_lost_key_counts_no_more() -> None:
    issuer = Issuer()
    issuer.url = "https://issuer.example"
    document = lambda: msgspec.json.encode(issuer.jwks())  # noqa: E731
    sign_on = SignOn(_settings(issuer), OidcKeys(document, within=0.0))
    old = issuer.token()
    assert sign_on.wants_keys(old)
    sign_on.keys.refresh()
    assert sign_on.judge(old).name == "oidc:alice@example.com"
    for kid, key in (
        ("two", ec.generate_private_key(ec.SECP256R1())),
        ("three", ed25519.Ed25519PrivateKey.generate()),
    ):
        issuer.rotate(kid, key)
        fresh = issuer.token()
        assert sign_on.wants_keys(fresh)
        sign_on.keys.refresh()
        assert sign_on.judge(fresh).scopes == (Scope.ADMIN,)
        assert not sign_on.wants_keys(fresh)
    with pytest.raises(OidcRefusedError, match="no key of the issuer"):
        sign_on.judge(old)


def _settings(issuer: Issuer, **changes: Any) -> OidcSettings:
    return OidcSettings(issuer=issuer.url, audience=("interlock",), grants=(Grant(scopes=(Scope.ADMIN,)),), **changes)


def test_keys_that_cannot_sign_or_are_weak_are_left_out() -> None:
    issuer = Issuer()
    good = issuer.jwks()["keys"][0]
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    others = [
        {**public(weak), "kid": "weak"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
        {**good, "kid": "for-encryption", "use": "enc"},
        {**good, "kid": "odd", "alg": "HS256"},
        {**good, "kid": "curve", "alg": "ES256"},
        "text",
    ]
    found = parse_keys(msgspec.json.encode({"keys": [*others, good]}))
    assert [one.id for one in found] == ["one"]
    for content in (b"<html>", b"[]", b"{}", msgspec.json.encode({"keys": others})):
        with pytest.raises(InterlockError):
            parse_keys(content)


@pytest.mark.parametrize(
    ("claims", "path", "values"),
    [
        ({"groups": ["a", 1, "b"]}, "groups", ("a", "b")),
        ({"groups": "a b"}, "groups", ("a b",)),
        ({"scope": "a b"}, "scope", ("a", "b")),
        ({"realm": {"roles": ["a"]}}, "realm.roles", ("a",)),
        ({"realm.roles": ["b"], "realm": {"roles": ["a"]}}, "realm.roles", ("b",)),
        ({"admin": True}, "admin", ("true",)),
        ({"realm": "text"}, "realm.roles", ()),
        ({"groups": {"a": 1}}, "groups", ()),
        ({}, "groups", ()),
    ],
)
def test_values_of_claims(claims: dict[str, Any], path: str, values: tuple[str, ...]) -> None:
    assert values_of(claims, path) == values


def test_keys_from_a_file_need_no_issuer(tmp_path: Path) -> None:
    issuer = Issuer()
    issuer.url = "https://issuer.invalid"
    (tmp_path / "keys.json").write_bytes(msgspec.json.encode(issuer.jwks()))
    (tmp_path / "interlock.toml").write_text(settings_of(issuer, 'jwks = "keys.json"'))
    with serving(tmp_path) as server:
        assert server.client.get(f"{V1}/pipelines", headers=bearer(issuer.token())).status_code == 200
        opened = interlock(tmp_path, "open", "--print")
        assert "#code=" in opened.stdout, opened.stderr


def test_an_issuer_that_is_down_at_the_start_delays_nothing(tmp_path: Path) -> None:
    issuer = Issuer()
    with issuer.running():
        pass
    (tmp_path / "interlock.toml").write_text(settings_of(issuer))
    with serving(tmp_path) as server:
        said = until(lambda: server.client.get("/readyz").json()["degraded"] or None, "what is wrong")
        assert any("nobody can sign on" in one for one in said)
        assert server.client.get("/readyz").status_code == 200


def test_settings_that_would_let_in_the_wrong_people_are_refused(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(
        '[oidc]\nissuer = "http://login.example.com"\nalgorithms = ["HS256", "none"]\nleeway = "2h"\n'
        '[[oidc.grants]]\nclaim = "groups"\nscopes = ["admn"]\n'
        '[[oidc.grants]]\nscopes = ["admin"]\nowners = ["a"]\n'
    )
    refused(
        interlock(tmp_path, "serve", "--port", "0"),
        "oidc.audience: is missing",
        "'http://login.example.com' is not an https:// address",
        "'HS256' is not allowed",
        "'none' is not allowed",
        "more than 10m",
        "claim and value are given together",
        "did you mean",
        "do not limit admin",
    )


def test_without_the_extra_the_start_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(settings_of(_named("https://login.example.com")))
    blocked = "import sys; sys.modules['jwt'] = None; from interlock.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", blocked, "serve", "--port", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT,
    )
    refused(done, "pip install 'interlock[oidc]'")
    assert "Traceback" not in done.stderr


def _named(url: str) -> Issuer:
    issuer = Issuer()
    issuer.url = url
    return issuer


def test_the_api_of_a_stranger_is_not_asked(server: Process) -> None:
    """A token that only looks signed costs nothing but its refusal."""
    response = httpx.get(f"{server.url}{V1}/pipelines", headers=bearer("ilk_a.b.c"), timeout=WAIT)
    problem(response, 401, "unauthorized")
