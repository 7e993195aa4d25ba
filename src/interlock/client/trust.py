"""Whom a client believes to be the server: by an authority, or by the very certificate of a controller of this user.

`ca_file` (or INTERLOCK_CA_FILE) names the authority of a company; without it those that the system knows count. A
controller on this machine is found by its owner's record, which holds its certificate: it need not be made for
127.0.0.1, and nobody else can show it.
"""

import os
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from interlock import believed
from interlock.client.errors import ClientError
from interlock.owner_record import find_certificate

if TYPE_CHECKING:
    from pathlib import Path

CA_VARIABLE: Final = "INTERLOCK_CA_FILE"
CERT_VARIABLE: Final = "INTERLOCK_CLIENT_CERT"
KEY_VARIABLE: Final = "INTERLOCK_CLIENT_KEY"


def verification(url: str, *, ca_file: "str | Path | None" = None) -> ssl.SSLContext | bool:
    """The `verify` of an HTTP client for that address."""
    if not url.lower().startswith("https://"):
        return True
    given = believed.now()
    chosen = str(ca_file or given.ca_file or os.environ.get(CA_VARIABLE, "") or given.ca_of_toml)
    known = given.certificate if given.url == url else ""
    known = known or find_certificate(url)
    if chosen and not known:
        return _with_own(_of_authority(chosen))
    own = os.environ.get(CERT_VARIABLE, "")
    if known:
        return _with_own(_of_certificate(known))
    return _with_own(_usual()) if own else True


def _usual() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


def _of_authority(file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        why = "it holds no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise ClientError(f"CA file {file}: {why}: mend --ca-file or {CA_VARIABLE}") from error


def _of_certificate(text: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False  # it is this certificate or none
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    with suppress(ssl.SSLError):  # a record that is damaged: nothing is believed
        context.load_verify_locations(cadata=text)
    return context


def _with_own(context: ssl.SSLContext) -> ssl.SSLContext:
    """With the certificate that a server with `--tls-client-ca` asks for."""
    own = os.environ.get(CERT_VARIABLE, "")
    if not own:
        return context
    try:
        context.load_cert_chain(own, os.environ.get(KEY_VARIABLE) or None, password=_no_password)
    except OSError as error:
        why = str(error.reason if isinstance(error, ssl.SSLError) else error.strerror)
        raise ClientError(f"client certificate {own}: {why}: look at {CERT_VARIABLE} and {KEY_VARIABLE}") from error
    return context


def _no_password() -> str:
    raise ClientError(f"the key of the client certificate has a password: write it without; see {KEY_VARIABLE}")
