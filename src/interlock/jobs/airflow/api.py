"""Airflow's REST API: v1 of Airflow 2 and v2 of Airflow 3, which differ in little that matters here.

Airflow 3 takes a token (JWT), which it gives at `/auth/token` for a user name and a password. It expires, and is void
once Airflow is set up with another key; so it is renewed when it is refused. Airflow 2 takes basic auth each time.
"""

import threading
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import quote

from interlock.decide.masking import Masks
from interlock.jobs.rest import Answer, RestClient, describe, refusal
from interlock.model.errors import JobStartError
from interlock.model.job_configs import AirflowConfig, BasicAuth, BearerAuth, JwtAuth

Version = Literal["v1", "v2"]
# Airflow 3 says 403 of a token that it cannot read, 401 of one that has expired.
_TOKEN_REFUSED: Final = (401, 403)


class AirflowApi:
    """The Airflows that jobs are started in, by their address; remembers their versions and tokens, in memory."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._versions: dict[str, Version] = {}
        self._tokens: dict[tuple[str, str, str], str] = {}

    def version(self, config: AirflowConfig, *, ask: bool = True) -> Version:
        """Which API it has: as configured, as last seen, or asked. Not to ask: v2, if nothing is known."""
        if config.api_version != "auto":
            return config.api_version
        with self._lock:
            known = self._versions.get(base(config))
        if known is not None or not ask:
            return known or "v2"
        return self.find_version(config)

    def find_version(self, config: AirflowConfig) -> Version:
        """Ask, whatever was seen before: an Airflow 2 may have become a 3."""
        if config.api_version != "auto":
            return config.api_version
        answer = self._client.call("GET", f"{base(config)}/api/v2/version")
        if answer.code != 404 and not answer.good:
            found = describe(answer, masks_of(config))
            hint = "is it Airflow's address? If so, set apiVersion to v1 (Airflow 2) or v2 (Airflow 3)"
            raise refusal(f"{base(config)} answered {found}; {hint}", answer)
        version: Version = "v2" if answer.good else "v1"
        with self._lock:
            self._versions[base(config)] = version
        return version

    def call(
        self,
        config: AirflowConfig,
        method: str,
        *path: str,
        params: Mapping[str, str] | None = None,
        json: object = None,
        accept: str = "application/json",
        limit: int | None = None,
    ) -> Answer:
        """A call of `/api/vN/dags/...`, with the config's credentials; again with a new token when refused."""
        version = self.version(config)
        url = "/".join([base(config), "api", version, "dags", *(quote(part, safe="") for part in path)])
        more: dict[str, Any] = {} if limit is None else {"limit": limit}

        def send() -> Answer:
            headers = {"accept": accept, **self._authorization(config)}
            return self._client.call(method, url, headers=headers, params=params, json=json, **more)

        answer = send()
        if isinstance(config.auth, JwtAuth) and answer.code in _TOKEN_REFUSED:
            self._forget(config, config.auth)
            answer = send()
        return answer

    def _authorization(self, config: AirflowConfig) -> dict[str, str]:
        match config.auth:
            case None:
                return {}
            case BasicAuth() | BearerAuth():
                return {"authorization": config.auth.header}
            case JwtAuth():
                return {"authorization": f"Bearer {self._token(config, config.auth)}"}

    def _token(self, config: AirflowConfig, auth: JwtAuth) -> str:
        with self._lock:
            known = self._tokens.get(_owner(config, auth))
        if known is not None:
            return known
        body = {"username": auth.username, "password": auth.password}
        answer = self._client.call("POST", f"{base(config)}/auth/token", json=body)
        token = answer.json().get("access_token")
        if not answer.good or not isinstance(token, str):
            found = describe(answer, masks_of(config))
            hint = "; Airflow 2 has no /auth/token: its auth is basic" if answer.code in (404, 405) else ""
            message = f"{base(config)}/auth/token gives no token to {auth.username}: {found}{hint}"
            raise refusal(message, answer) if not answer.good else JobStartError(message, permanent=True)
        with self._lock:
            self._tokens[_owner(config, auth)] = token
        return token

    def _forget(self, config: AirflowConfig, auth: JwtAuth) -> None:
        with self._lock:
            self._tokens.pop(_owner(config, auth), None)


def base(config: AirflowConfig) -> str:
    """Airflow's address, as paths are appended to it."""
    return config.url.rstrip("/")


def masks_of(config: AirflowConfig) -> Masks:
    """Hides what the config says in confidence."""
    return Masks(config.auth.secrets if config.auth is not None else [])


def _owner(config: AirflowConfig, auth: JwtAuth) -> tuple[str, str, str]:
    # With the password: a token that was issued for one password must not serve another.
    return base(config), auth.username, auth.password
