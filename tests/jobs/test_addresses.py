"""Which addresses may be called, however they are written; and that the checked address is the one connected to."""

import contextlib
import ipaddress
import socket
import threading
import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.jobs.addresses import AddressPolicy, AddressRefusedError, guarded_client, resolve_host
from interlock.model.errors import InvalidValueError
from tests.jobs.loopback import Answer, Server, listener, unused_port

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
REFUSED = [
    ("127.0.0.1", "loopback"),
    ("127.255.0.9", "loopback"),
    ("::1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("10.1.2.3", "private"),
    ("172.16.0.1", "private"),
    ("192.168.1.1", "private"),
    ("fd12:3456::1", "private"),
    ("100.64.0.1", "private"),
    ("fec0::1", "private"),
    ("64:ff9b:1::1", "private"),
    ("::ffff:10.0.0.1", "private"),
    ("64:ff9b::a00:1", "private"),
    ("2002:a00:1::", "private"),
    ("2001:0:808:808::f5ff:fffe", "private"),  # Teredo: the client's address, inverted, is 10.0.0.1
    ("169.254.169.254", "metadata"),
    ("::ffff:169.254.169.254", "metadata"),
    ("64:ff9b::a9fe:a9fe", "metadata"),
    ("fe80::1", "metadata"),
    ("fe80::1%eth0", "metadata"),
    ("fd00:ec2::254", "metadata"),
    ("168.63.129.16", "metadata"),
    ("100.100.100.200", "metadata"),
    ("0.0.0.0", "unspecified"),
    ("::", "unspecified"),
    ("224.0.0.1", "multicast"),
    ("ff02::1", "multicast"),
    ("::7f00:1", "reserved"),
    ("240.0.0.1", "reserved"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    AddressPolicy().check("api.example", [address])


@pytest.mark.parametrize(("address", "kind"), REFUSED)
def test_others_are_refused_with_the_way_to_allow_them(address: str, kind: str) -> None:
    with pytest.raises(AddressRefusedError) as refusal:
        AddressPolicy().check("api.example", ["8.8.8.8", address])
    assert refusal.value.permanent
    for word in (kind, address, "api.example", "allow_private"):
        assert word in str(refusal.value)


@pytest.mark.parametrize(("address", "kind"), REFUSED)
def test_the_simple_setting_opens_private_and_loopback_only(address: str, kind: str) -> None:
    if kind in ("private", "loopback"):
        AddressPolicy(True).check("api.example", [address])
    else:
        with pytest.raises(AddressRefusedError):
            AddressPolicy(True).check("api.example", [address])


@pytest.mark.parametrize(
    ("entries", "host", "address", "allowed"),
    [
        (["10.0.0.0/8"], "any.example", "10.9.9.9", True),
        (["10.0.0.0/8"], "any.example", "11.9.9.9", True),  # public
        (["10.0.0.0/8"], "any.example", "192.168.0.1", False),
        (["10.0.0.0/8"], "any.example", "::ffff:10.9.9.9", True),
        (["10.0.0.7"], "any.example", "10.0.0.7", True),
        (["10.0.0.7"], "any.example", "10.0.0.8", False),
        (["fd00::/8"], "any.example", "fd00::5", True),
        (["[::1]"], "any.example", "::1", True),
        (["169.254.169.254/32"], "any.example", "169.254.169.254", True),
        (["etl.corp"], "etl.corp", "10.0.0.1", True),
        (["etl.corp"], "ETL.corp.", "10.0.0.1", True),
        (["etl.corp"], "evil-etl.corp", "10.0.0.1", False),
        (["etl.corp"], "etl.corp.evil", "10.0.0.1", False),
        (["*.corp"], "etl.corp", "10.0.0.1", True),
        (["*.corp"], "corp", "10.0.0.1", False),
        (["*.corp"], "notcorp", "10.0.0.1", False),
        ([], "etl.corp", "10.0.0.1", False),
    ],
)
def test_a_list_opens_what_it_names(entries: list[str], host: str, address: str, allowed: bool) -> None:
    policy = AddressPolicy(entries)
    if allowed:
        policy.check(host, [address])
    else:
        with pytest.raises(AddressRefusedError):
            policy.check(host, [address])


@pytest.mark.parametrize("entry", ["10.0.0.0/99", "etl.corp:8080", "http://etl.corp", ""])
def test_a_setting_that_names_nothing_is_an_error(entry: str) -> None:
    with pytest.raises(InvalidValueError, match="allow_private"):
        AddressPolicy([entry])


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_the_same_however_it_is_written_into_ipv6(address: ipaddress.IPv4Address) -> None:
    def refused(text: str) -> bool:
        try:
            AddressPolicy().check("api.example", [text])
        except AddressRefusedError:
            return True
        return False

    number = int(address)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    nat64 = ipaddress.IPv6Address((0x0064FF9B << 96) | number)
    sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (number << 80))
    assert {refused(str(one)) for one in (mapped, nat64, sixtofour)} == {refused(str(address))}


# ------------------------------------------------------------------------------------------------------ the client


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::1]"])
def test_loopback_is_refused_however_it_is_spelled(host: str) -> None:
    with guarded_client(AddressPolicy()) as client, pytest.raises(AddressRefusedError):
        client.get(f"http://{host}:{unused_port()}/")


def test_one_bad_address_among_good_ones_refuses_the_host_before_any_connection() -> None:
    with (
        Server() as server,
        guarded_client(AddressPolicy(["127.0.0.1"]), lambda _host, _port: ["127.0.0.1", "10.0.0.1"]) as client,
    ):
        with pytest.raises(AddressRefusedError, match=r"10\.0\.0\.1"):
            client.get(f"http://api.example:{server.port}/")
        assert server.seen == []


def test_the_checked_address_is_the_one_connected_to_and_the_name_stays() -> None:
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with Server() as server, guarded_client(AddressPolicy(True), rebinding) as client:
        answer = client.get(f"http://api.example:{server.port}/")
        assert answer.text == "ok"
        assert asked == ["api.example"]
        assert server.seen[0].headers["Host"] == f"api.example:{server.port}"


def test_tls_asks_for_the_name_not_the_address() -> None:
    hello: list[bytes] = []
    with listener() as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                hello.append(connection.recv(4096))

        thread = threading.Thread(target=answer)
        thread.start()
        port = listening.getsockname()[1]
        with (
            guarded_client(AddressPolicy(True), lambda _host, _port: ["127.0.0.1"]) as client,
            pytest.raises(httpx.ConnectError),
        ):
            client.get(f"https://api.example:{port}/")
        thread.join()
    assert b"api.example" in hello[0]


def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    with (
        Server() as server,
        guarded_client(AddressPolicy(True), lambda _host, _port: ["127.0.0.9", "127.0.0.1"]) as client,
    ):
        assert client.get(f"http://api.example:{server.port}/").text == "ok"


@pytest.mark.parametrize("failure", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
def test_a_name_that_can_not_be_resolved_is_no_connection(failure: Exception) -> None:
    def fail(_host: str, _port: int) -> list[str]:
        raise failure

    with guarded_client(AddressPolicy(), fail) as client, pytest.raises(httpx.ConnectError, match=r"api\.example"):
        client.get("http://api.example/")
    with guarded_client(AddressPolicy(), lambda _h, _p: []) as client, pytest.raises(httpx.ConnectError):
        client.get("http://api.example/")


def test_proxies_and_netrc_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    with Server() as server, guarded_client(AddressPolicy(True)) as client:
        assert client.get(server.url).text == "ok"


def test_no_cookie_is_remembered() -> None:
    with Server(Answer(headers={"Set-Cookie": "session=abc; Path=/"})) as server:
        with guarded_client(AddressPolicy(True)) as client:
            client.get(server.url)
            client.get(server.url)
        assert "Cookie" not in server.seen[1].headers


def test_a_connection_is_used_again() -> None:
    peers: list[int] = []
    remember = Answer(before=lambda handler: peers.append(handler.client_address[1]))
    with Server(remember) as server, guarded_client(AddressPolicy(True)) as client:
        for _ in range(3):
            client.get(server.url)
    assert len(set(peers)) == 1


def drip(listening: socket.socket, stop: threading.Event) -> None:
    """One byte of a header after the other, each well within any read timeout, and never an end."""
    connection, _ = listening.accept()
    with connection, contextlib.suppress(OSError):  # the client hangs up
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not stop.wait(0.02):
            connection.sendall(b"x")


def test_a_deadline_bounds_the_whole_exchange() -> None:
    stop = threading.Event()
    with listener() as listening:
        thread = threading.Thread(target=drip, args=(listening, stop))
        thread.start()
        try:
            with guarded_client(AddressPolicy(True)) as client, pytest.raises(httpx.ReadTimeout):
                client.get(
                    f"http://127.0.0.1:{listening.getsockname()[1]}/",
                    timeout=60,
                    extensions={"deadline": time.monotonic() + 0.3},
                )
        finally:
            stop.set()
            thread.join()


def test_other_protocols_are_not_spoken() -> None:
    with guarded_client(AddressPolicy(True)) as client, pytest.raises(httpx.UnsupportedProtocol):
        client.get("ftp://127.0.0.1/")


def test_the_system_resolves_a_name_to_all_its_addresses() -> None:
    assert "127.0.0.1" in resolve_host("127.0.0.1", 80)
    assert len(resolve_host("localhost", 80)) == len(set(resolve_host("localhost", 80)))
