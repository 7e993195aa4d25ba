"""Where the values of secrets come from."""

from typing import Protocol


class Secrets(Protocol):
    """Looks up secrets by the name that a template gives. Called from worker threads; a call may take long."""

    def get(self, name: str) -> str:
        """The value now: of `INTERLOCK_SECRET_X`, `file:NAME`, `secretsmanager:ARN` or `ssm:NAME`. Never kept.

        Raises SecretError, which says what to do and never what the secret is.
        """
        ...
