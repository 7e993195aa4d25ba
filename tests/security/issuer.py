"""An OpenID Connect issuer on loopback: real keys, real signatures, and everything that can go wrong with them."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from interlock.embedded.clock import SystemClock

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


class Issuer:
    """Signs tokens and publishes the keys; `asked` counts how often it was asked for them."""

    def __init__(self) -> None:
        self.keys: dict[str, PrivateKey] = {}
        self.asked = 0
        self.answers = True
        self._server: ThreadingHTTPServer | None = None
        self.url = ""
        self.rotate("one")

    def rotate(self, kid: str, key: PrivateKey | None = None, *, keep: bool = False) -> None:
        """Sign with another key from now on."""
        made = key or rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.keys = {**(self.keys if keep else {}), kid: made}

    def jwks(self) -> dict[str, Any]:
        return {"keys": [{**public(key), "kid": kid, "use": "sig"} for kid, key in self.keys.items()]}

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = SystemClock().now()
        found = {
            "iss": self.url,
            "aud": "interlock",
            "sub": "alice@example.com",
            "iat": now,
            "exp": now + timedelta(minutes=5),
            "groups": ["platform"],
        }
        return {name: value for name, value in {**found, **changes}.items() if value is not None}

    def token(self, *, kid: str = "", alg: str = "", head: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A signed token."""
        name = kid or list(self.keys)[-1]
        key = self.keys[name]
        named = {"kid": name, **(head or {})}
        return jwt.encode(self.claims(**changes), key, algorithm=alg or algorithm(key), headers=named)

    @contextmanager
    def running(self) -> Iterator["Issuer"]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                body = json.dumps(issuer._answer(self.path)).encode()
                self.send_response(200 if issuer.answers else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _answer(self, path: str) -> dict[str, Any]:
        if path.startswith("/.well-known"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return self.jwks()


def algorithm(key: PrivateKey) -> str:
    match key:
        case rsa.RSAPrivateKey():
            return "RS256"
        case ec.EllipticCurvePrivateKey():
            return "ES256"
        case _:
            return "EdDSA"


def public(key: PrivateKey) -> dict[str, Any]:
    found: dict[str, Any]
    match key:
        case rsa.RSAPrivateKey():
            found = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case ec.EllipticCurvePrivateKey():
            found = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case _:
            found = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return found
