"""TLS: a real `serve` with a certificate, its renewal, client certificates, and tokens that cross no network bare."""

import json
import os
import shutil
import socket
import ssl
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from interlock import Client
from interlock.api.tls import TlsError, TlsFiles, load
from interlock.api.transport import Ways
from interlock.client import ConnectionFailedError
from interlock.client.settings import token_for
from tests.api.running import WAIT, Process, pipeline, problem, serving, until
from tests.security.certificates import Authority, private_text, replace
from tests.security.commands import interlock, refused

V1 = "/api/v1"
_LIMITS = """
[limits]
connections = 40
connections_per_peer = 30
head_timeout = "20s"
read_timeout = "1s"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        for name in ("INTERLOCK_TOKEN", "INTERLOCK_CA_FILE", "SSL_CERT_FILE"):
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def arguments(pair: tuple[Path, Path]) -> tuple[str, ...]:
    return ("--tls-cert", str(pair[0]), "--tls-key", str(pair[1]))


@pytest.fixture(scope="module")
def server(home: Path, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One for all tests that leave its certificate alone; settings from the file."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = authority.make("interlock.test", host="127.0.0.1", file="server")
    (folder / "interlock.toml").write_text(f'[tls]\ncert = "{cert}"\nkey = "{key}"\n{_LIMITS}')
    with serving(folder) as process:
        with httpx.Client(base_url=process.url, verify=trusting(authority)) as client:
            assert client.put(f"{V1}/pipelines/gold", json=pipeline("gold")).status_code == 201
        yield process


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.file)


def owner_of(server: Process, authority: Authority) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token_for(server.url)}"}
    return httpx.Client(base_url=server.url, verify=trusting(authority), headers=headers, timeout=WAIT)


def shown_by(url: str, context: ssl.SSLContext) -> str:
    """The serial number of the certificate that a server shows."""
    address = httpx.URL(url)
    with (
        closing(socket.create_connection((address.host, address.port or 0), timeout=WAIT)) as plain,
        context.wrap_socket(plain, server_hostname=address.host) as made,
    ):
        return str((made.getpeercert() or {})["serialNumber"])


# ------------------------------------------------------------------------------------------------------- clients


def test_commands_sdk_and_page_work_over_tls(home: Path, server: Process, authority: Authority) -> None:
    assert server.url.startswith("https://127.0.0.1:")
    set_ = interlock(server.folder, "sensor", "set", "gold", "rows", "count=5")
    assert set_.returncode == 0, set_.stderr
    assert interlock(server.folder, "status", "--json").returncode == 0
    # By the owner's record, from anywhere, without a word about certificates.
    with Client(server.url) as client:
        assert client.sensor("gold", "rows").set(count=6).pipeline == "gold"
        assert [one.id for one in client.pipelines()] == ["gold"]
    elsewhere = interlock(home, "status", "--json", "--url", server.url)
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert interlock(server.folder, "open", "--print").stdout.startswith(server.url)
    doctor = json.loads(interlock(server.folder, "doctor", "--json").stdout)
    assert ("server", True) in [(one["name"], one["ok"]) for one in doctor["checks"]]


def test_somebody_else_believes_an_authority_only(
    server: Process, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = interlock(server.folder, "token", "create", "--name", "far", "--scope", "admin").stdout.strip()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    other = Authority(tmp_path, "other")
    for believed in (None, str(other.file)):
        with (
            Client(server.url, token, ca_file=believed) as client,
            pytest.raises(ConnectionFailedError, match="certificate"),
        ):
            client.pipelines()
    with Client(server.url, token, ca_file=str(authority.file)) as client:
        assert client.pipelines()
    environment = {"INTERLOCK_TOKEN": token, "XDG_STATE_HOME": str(tmp_path)}
    by_option = interlock(
        tmp_path, "--ca-file", str(authority.file), "status", "--url", server.url, environment=environment
    )
    assert by_option.returncode == 0, by_option.stderr
    known = {**environment, "INTERLOCK_CA_FILE": str(authority.file)}
    assert interlock(tmp_path, "runs", "gold", "--url", server.url, environment=known).returncode == 0
    (tmp_path / "interlock.toml").write_text(f'url = "{server.url}"\nca_file = "{authority.file.name}"\n')
    shutil.copy(authority.file, tmp_path / authority.file.name)
    assert interlock(tmp_path, "status", environment=environment).returncode == 0
    refused(interlock(tmp_path, "--ca-file", "nowhere.pem", "status", environment=environment), "nowhere.pem")
    interlock(server.folder, "token", "revoke", "far")


def test_the_cookie_is_secure_and_old_versions_are_refused(server: Process, authority: Authority) -> None:
    token = interlock(server.folder, "token", "create", "--name", "page", "--scope", "read").stdout.strip()
    with httpx.Client(base_url=server.url, verify=trusting(authority)) as client:
        headers = {"Origin": server.url, "X-Interlock": "1"}
        begun = client.post(f"{V1}/session", json={"token": token}, headers=headers)
        assert begun.status_code == 200, begun.text
        assert "; Secure" in begun.headers["set-cookie"]
        assert "strict-transport-security" not in begun.headers
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError, match=r"PROTOCOL_VERSION|closed|reset|EOF"):
        shown_by(server.url, old)
    with pytest.raises(httpx.TransportError):
        httpx.get(server.url.replace("https:", "http:") + "/healthz")


def test_streams_and_plain_writes_work(server: Process, authority: Authority) -> None:
    with (
        owner_of(server, authority) as client,
        client.stream("GET", f"{V1}/events/stream") as stream,
    ):
        lines = stream.iter_lines()
        for count in range(20):
            assert client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": count}).status_code == 200
        assert client.put(f"{V1}/pipelines/silver", json=pipeline("silver")).status_code == 201
        up = {"status": "ready"}
        assert client.put(f"{V1}/pipelines/silver/sensors/up", json=up).status_code == 200
        assert any("TRIGGER_STARTED" in line for line in lines)


# ----------------------------------------------------------------------------------------------------------- floods


def test_who_never_speaks_tls_does_not_use_up_the_server(server: Process, authority: Authority) -> None:
    address = httpx.URL(server.url)
    with ExitStack() as opened:
        for number in range(60):
            made = opened.enter_context(closing(socket.create_connection((address.host, address.port or 0))))
            made.sendall(b"\x16\x03\x01" if number % 2 else b"GET / HTTP/1.1\r\n\r\n")
        began = time.monotonic()
        for _ in range(3):
            assert httpx.get(f"{server.url}/readyz", verify=trusting(authority), timeout=10).status_code == 200
        assert time.monotonic() - began < 5
        mine = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        assert mine < 60 + 40


def test_who_never_reads_over_tls_is_ended(server: Process, authority: Authority) -> None:
    address = httpx.URL(server.url)
    context = trusting(authority)
    with ExitStack() as opened:
        silent = []
        for _ in range(5):
            plain = socket.socket()
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.settimeout(WAIT)
            plain.connect((address.host, address.port or 0))
            made = opened.enter_context(closing(context.wrap_socket(plain, server_hostname=address.host)))
            for _ in range(40):
                made.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
            silent.append(made)
        until(lambda: "nobody reads" in server.log.read_text() or None, "the end of those who do not read")
        assert httpx.get(f"{server.url}/healthz", verify=context, timeout=10).status_code == 200


# ---------------------------------------------------------------------------------------------------------- renewal


def test_a_renewed_certificate_is_shown_without_dropping_connections(
    home: Path, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.make("renewed", days=20)
    context = trusting(authority)
    with serving(tmp_path, *arguments(pair)) as server, httpx.Client(base_url=server.url, verify=context) as client:
        degraded = client.get("/readyz").json()["degraded"]
        assert any("expires in" in one for one in degraded)
        assert "expires in" in server.log.read_text()
        assert "expires in" in interlock(tmp_path, "doctor").stdout
        first = shown_by(server.url, context)
        with client.stream("GET", f"{V1}/events/stream") as stream:
            lines = stream.iter_lines()
            authority.make("renewed", days=200)
            until(lambda: shown_by(server.url, context) != first or None, "the new certificate")
            assert client.put(f"{V1}/pipelines/gold", json=pipeline("gold")).status_code == 201
            assert client.put(f"{V1}/pipelines/gold/sensors/up", json={"status": "ready"}).status_code == 200
            assert any("TRIGGER_STARTED" in line for line in lines)
        assert client.get("/readyz").json()["degraded"] == []
        # The commands know the new one, too.
        assert interlock(tmp_path, "sensor", "set", "gold", "rows", "count=1").returncode == 0

        good = shown_by(server.url, context)
        replace(pair[1], private_text(ec.generate_private_key(ec.SECP256R1())))

        def refusal() -> list[str]:
            return [one for one in client.get("/readyz").json()["degraded"] if "cannot be used" in one]

        (said,) = until(refusal, "the refusal of a key of another certificate")
        assert str(pair[1]) not in said
        assert "is not the key of the certificate" in server.log.read_text()
        assert shown_by(server.url, context) == good
        authority.make("renewed", days=300)
        until(lambda: not refusal() or None, "the end of the refusal")
        assert shown_by(server.url, context) != good


def test_client_certificates(home: Path, authority: Authority, tmp_path: Path) -> None:
    pair = authority.make("strict")
    clients = Authority(tmp_path, "clients")
    own = clients.make("etl", client=True)
    more = ("--tls-client-ca", str(clients.file))
    context = trusting(authority)
    with serving(tmp_path, *arguments(pair), *more) as server:
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.url}/healthz", verify=context)
        stranger = authority.make("stranger", client=True)
        wrong = trusting(authority)
        wrong.load_cert_chain(*stranger)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.url}/healthz", verify=wrong)
        context.load_cert_chain(*own)
        assert httpx.get(f"{server.url}/healthz", verify=context).status_code == 200
        known = {"INTERLOCK_CLIENT_CERT": str(own[0]), "INTERLOCK_CLIENT_KEY": str(own[1])}
        done = interlock(tmp_path, "status", "--url", server.url, environment=known)
        assert done.returncode == 0, done.stderr
        assert interlock(tmp_path, "status", "--url", server.url).returncode == 1


def test_what_cannot_be_served_with_is_refused_at_the_start(authority: Authority, tmp_path: Path) -> None:
    cert, _ = authority.make("start")
    other = authority.make("other")
    serve = ("serve", "--port", "0")
    refused(interlock(tmp_path, *serve, "--tls-cert", str(cert)), "--tls-key is missing")
    refused(interlock(tmp_path, *serve, *arguments((cert, other[1]))), "is not the key of the certificate")
    assert not (tmp_path / "interlock.db").exists()
    (tmp_path / "interlock.toml").write_text('trusted_proxies = ["proxy"]\n[tls]\ncret = "x"\ncert = "y"\n')
    refused(interlock(tmp_path, *serve), "did you mean", "tls.key: is missing", "trusted_proxies[0]")


def test_keys_with_passwords_and_expired_certificates(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.make("locked")
    locked = tmp_path / "locked.key"
    locked.write_bytes(private_text(ec.generate_private_key(ec.SECP256R1()), b"secret"))
    with pytest.raises(TlsError, match="has a password"):
        load(TlsFiles(cert=cert, key=locked))
    with pytest.raises(TlsError, match="cannot be read"):
        load(TlsFiles(cert=cert, key=tmp_path / "none"))
    (tmp_path / "empty").write_text("")
    with pytest.raises(TlsError, match="in PEM"):
        load(TlsFiles(cert=cert, key=tmp_path / "empty"))
    expired = authority.make("expired", days=-1)
    assert load(TlsFiles(cert=expired[0], key=expired[1])).expires_at is None
    key.chmod(0o644)
    found = load(TlsFiles(cert=cert, key=key))
    assert found.exposed
    assert found.expires_at is not None
    client_only = authority.make("purpose", client=True)
    with pytest.raises(TlsError, match="clients would refuse it"):
        load(TlsFiles(cert=client_only[0], key=client_only[1]))


# ------------------------------------------------------------------------------------------- tokens over plain HTTP


@pytest.mark.parametrize(
    ("named", "scheme", "client", "server", "safe"),
    [
        ((), "http", "127.0.0.1", "127.0.0.1", True),
        ((), "http", "::1", "::1", True),
        ((), "http", "::ffff:127.0.0.1", "::ffff:127.0.0.1", True),
        ((), "http", "192.0.2.7", "192.0.2.7", True),
        ((), "http", "192.0.2.8", "192.0.2.7", False),
        ((), "https", "192.0.2.8", "192.0.2.7", True),
        (("192.0.2.8",), "http", "192.0.2.8", "192.0.2.7", True),
        (("192.0.2.0/28",), "http", "::ffff:192.0.2.8", "::ffff:192.0.2.7", True),
        (("192.0.2.9",), "http", "192.0.2.8", "192.0.2.7", False),
        (("2001:db8::/64",), "http", "192.0.2.8", "192.0.2.7", False),
        (("2001:db8::/64",), "http", "2001:db8::9", "2001:db8:1::", True),
        ((), "http", "", "", False),
    ],
)
def test_which_ways_may_carry_a_token(
    named: tuple[str, ...], scheme: str, client: str, server: str, safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    assert Ways(named).may_carry_token(scheme, client, server) is safe


def own_address() -> str:
    """An address of this machine in its network, or nothing."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return ""
        found = str(probe.getsockname()[0])
    return "" if found.startswith("127.") else found


def test_a_token_over_plain_http_from_elsewhere_is_refused(home: Path, tmp_path: Path) -> None:
    # As seen by a server on 127.0.0.1, the machine's address in its network is not the machine's own.
    address = own_address()
    if not address:
        pytest.skip("this machine has no address but loopback")
    token = interlock(tmp_path, "token", "create", "--name", "me", "--scope", "admin").stdout.strip()
    headers = {"Authorization": f"Bearer {token}"}
    transport = httpx.HTTPTransport(local_address=address)
    with serving(tmp_path, "--host", "0.0.0.0") as server:
        assert "tokens are taken from this machine alone" in server.log.read_text()
        assert server.client.get(f"{V1}/pipelines", headers=headers).status_code == 200
        assert server.client.put(f"{V1}/pipelines/gold", json=pipeline("gold"), headers=headers).status_code == 201
        with httpx.Client(base_url=server.url, transport=transport, headers=headers) as far:
            problem(far.get(f"{V1}/pipelines"), 403, "insecure-transport")
            write = far.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 1})
            assert "trusted_proxies" in problem(write, 403, "insecure-transport")["detail"]
            assert httpx.get(f"{server.url}/healthz").status_code == 200
            bare = far.post(f"{V1}/session", json={"token": token}, headers={"Authorization": ""})
            problem(bare, 403, "insecure-transport")
    (tmp_path / "interlock.toml").write_text(f'trusted_proxies = ["{address}"]\n')
    transport = httpx.HTTPTransport(local_address=address)
    with (
        serving(tmp_path, "--host", "0.0.0.0") as server,
        httpx.Client(base_url=server.url, transport=transport, headers=headers) as proxy,
    ):
        assert proxy.get(f"{V1}/pipelines").status_code == 200
        write = proxy.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 1})
        assert write.status_code == 200
