"""Probe `http`: a request whose JSON answer is the observation. The address guard of HTTP jobs holds here as well."""

import time
from typing import Any

import httpx

from interlock.decide.masking import Masks
from interlock.jobs.addresses import AddressPolicy, AddressRefusedError, Resolve, guarded_client, resolve_host
from interlock.jobs.http.calls import HttpAnswer, Target, secrets_of, send
from interlock.model.durations import Duration, format_duration
from interlock.model.errors import ProbeError
from interlock.model.job_configs import HTTP_METHODS, BasicAuth
from interlock.model.probe_configs import HttpProbeConfig
from interlock.model.sensor import MAX_SENSOR_BYTES
from interlock.ports.probes import ProbeRequest
from interlock.probes.configs import default_payload, observation_of, read_config


class HttpProbe:
    """Asks over HTTP; `allow_private` as in AddressPolicy."""

    def __init__(self, *, allow_private: bool | tuple[str, ...] = False, resolve: Resolve = resolve_host) -> None:
        self._client = guarded_client(AddressPolicy(allow_private), resolve)

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        """The JSON object of a good answer."""
        config = read_config(request, HttpProbeConfig)
        target = _target_of(config)
        built = self._built(request, config, target)
        try:
            answer = send(self._client, built, whole=lambda _code: True)
        except httpx.TimeoutException:
            waited = format_duration(Duration(seconds=request.timeout.total_seconds()))
            raise ProbeError(f"{target}: no answer within {waited}") from None
        except AddressRefusedError as error:
            raise ProbeError(str(error)) from error
        except httpx.HTTPError as error:
            raise ProbeError(f"{target}: {target.quoted(str(error)) or type(error).__name__}") from None
        return _observation(answer, target)

    def _built(self, request: ProbeRequest, config: HttpProbeConfig, target: Target) -> httpx.Request:
        seconds = request.timeout.total_seconds()
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        headers |= {name.lower(): str(value) for name, value in config.headers.items()}
        if target.auth is not None:
            headers["authorization"] = target.auth.header
        body = config.body
        if body is None and target.method not in ("GET", "DELETE"):
            body = default_payload(request)
        try:
            return self._client.build_request(
                target.method,
                target.url,
                headers=headers,
                content=body if isinstance(body, str) else None,
                json=None if isinstance(body, str) else body,
                timeout=seconds,
                extensions={"deadline": time.monotonic() + seconds},
            )
        except (UnicodeEncodeError, ValueError, TypeError) as error:
            # The error of an encoder quotes what it could not encode.
            raise ProbeError(f"headers or body: cannot be sent ({type(error).__name__})") from None


def _target_of(config: HttpProbeConfig) -> Target:
    method = config.method.upper()
    if method not in HTTP_METHODS:
        raise ProbeError(f"method: {config.method!r} is not one of {', '.join(HTTP_METHODS)}")
    try:
        url = httpx.URL(config.url)
    except httpx.InvalidURL:
        url = httpx.URL("")  # what it says is wrong may be the password
    if url.scheme not in ("http", "https") or not url.host:
        raise ProbeError("url: is not a URL: write http://host/path or https://host/path")
    auth = BasicAuth(username=url.username, password=url.password) if url.userinfo else None
    masks = Masks(secrets_of(config.headers, url, auth))
    return Target(method, url.copy_with(userinfo=b""), auth, masks)


def _observation(answer: HttpAnswer, target: Target) -> dict[str, Any]:
    if not 200 <= answer.code < 300:
        raise ProbeError(f"{target} answered {answer.words(target)}")
    if len(answer.text) >= MAX_SENSOR_BYTES:  # no more of it was read
        raise ProbeError(f"the answer of {target} is larger than the {MAX_SENSOR_BYTES} bytes that a sensor may have")
    try:
        return observation_of(answer.text.encode(), f"the answer of {target}")
    except ProbeError as error:
        raise ProbeError(target.masks.hide(str(error))) from None
