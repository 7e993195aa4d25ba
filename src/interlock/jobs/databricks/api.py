"""Databricks' REST API 2.1, with the identity of the config: a personal access token, or a service principal.

A service principal has a client id and a secret, which are exchanged at the workspace for a token of an hour. That is
kept in memory until shortly before its end, and renewed when it is refused.
"""

import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from interlock.decide.masking import Masks
from interlock.jobs.rest import Answer, RestClient, describe, refusal
from interlock.model.errors import JobStartError
from interlock.model.job_configs import DatabricksAuth, DatabricksConfig

_MARGIN_SECONDS: Final = 60.0
_LIFE_SECONDS: Final = 3600.0
_Owner = tuple[str, str, str]


class DatabricksApi:
    """The workspaces that jobs are started in."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        # Each with the instant (of `time.monotonic`) from which it is not used any more.
        self._tokens: dict[_Owner, tuple[str, float]] = {}

    def sign_in(self, config: DatabricksConfig) -> None:
        """Have a token at hand, so that a call fails for no other reason than its own."""
        self._authorization(config)

    def get(self, config: DatabricksConfig, path: str, params: Mapping[str, str]) -> Answer:
        """GET `/api/2.1/...`."""
        return self._call(config, "GET", path, params=params)

    def post(self, config: DatabricksConfig, path: str, body: object) -> Answer:
        """POST `/api/2.1/...`."""
        return self._call(config, "POST", path, json=body)

    def _call(
        self,
        config: DatabricksConfig,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: object = None,
    ) -> Answer:
        url = f"{base(config)}/api/2.1/{path}"

        def send() -> Answer:
            return self._client.call(method, url, headers=self._authorization(config), params=params, json=json)

        answer = send()
        if answer.code in (401, 403) and self._forget(config):
            answer = send()
        return answer

    def _authorization(self, config: DatabricksConfig) -> dict[str, str]:
        auth = config.auth
        if auth is None:
            return {}
        token = auth.token or self._token(config, auth)
        return {"authorization": f"Bearer {token}"}

    def _token(self, config: DatabricksConfig, auth: DatabricksAuth) -> str:
        with self._lock:
            known, until = self._tokens.get(_owner(config, auth), ("", 0.0))
        if known and time.monotonic() < until:
            return known
        pair = b64encode(f"{auth.client_id}:{auth.client_secret}".encode()).decode()
        answer = self._client.call(
            "POST",
            f"{base(config)}/oidc/v1/token",
            headers={"authorization": f"Basic {pair}"},
            form={"grant_type": "client_credentials", "scope": "all-apis"},
        )
        body = answer.json()
        token = body.get("access_token")
        if not answer.good or not isinstance(token, str):
            message = f"{base(config)} gives no token to the service principal: {describe(answer, masks_of(config))}"
            raise refusal(message, answer) if not answer.good else JobStartError(message, permanent=True)
        life = body.get("expires_in")
        seconds = float(life) if isinstance(life, int | float) else _LIFE_SECONDS
        with self._lock:
            self._tokens[_owner(config, auth)] = token, time.monotonic() + seconds - _MARGIN_SECONDS
        return token

    def _forget(self, config: DatabricksConfig) -> bool:
        """Drop a token that was refused; False when there is none of ours to renew."""
        if config.auth is None or config.auth.token:
            return False
        with self._lock:
            return self._tokens.pop(_owner(config, config.auth), None) is not None


def base(config: DatabricksConfig) -> str:
    """The workspace's address; Databricks shows it without a scheme as often as with one."""
    host = config.host.rstrip("/")
    return host if "://" in host else f"https://{host}"


def masks_of(config: DatabricksConfig) -> Masks:
    """Hides what the config says in confidence."""
    return Masks(config.auth.secrets if config.auth is not None else [])


def _owner(config: DatabricksConfig, auth: DatabricksAuth) -> _Owner:
    return base(config), auth.client_id or "", auth.client_secret or ""
