"""What the role of this machine gives an integration in place of stored keys, where the operator allows it.

Each cloud's own variables and metadata server say which role that is: boto3's chain for Bedrock, google-auth's default
for Vertex AI, a federated token for Azure. All of it blocks: call it in a thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from integrations.providers.base import Credentials
from integrations.transport.access_tokens import SCOPE, AccessToken

logger = logging.getLogger("integrations.credentials")

# Tokens live for an hour, and every user of them looks at least every SNAPSHOT_SECONDS.
_RENEW_BEFORE, _TIMEOUT = 600.0, 10.0
_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
_AZURE_LOGIN = "https://login.microsoftonline.com"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
# What a role gives may only be sent to its own cloud: a project's administrator names the address.
HOSTS: Mapping[str, tuple[str, ...]] = {
    "bedrock": (".amazonaws.com", ".amazonaws.com.cn"),
    "google_vertex": (".googleapis.com",),
    "azure_openai": (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"),
}


class _Given(NamedTuple):
    secret: str = ""
    extra: Mapping[str, str] = {}


class Roles:
    """What a process has got by the role of its machine. Threads may share it."""

    def __init__(self, *, rest_seconds: float = 30.0) -> None:
        self._lock = threading.Lock()
        self._rest_seconds = rest_seconds
        # Until when a server that failed is left alone: the vendors' libraries try for up to half a minute.
        self._resting: dict[str, float] = {}
        self._last: dict[str, _Given] = {}
        self._azure_token: AccessToken | None = None
        self._sources: Mapping[str, Callable[[], _Given]] = {
            "bedrock": self._aws,
            "google_vertex": self._google,
            "azure_openai": self._azure,
        }

    def resolved(self, credentials: Credentials) -> Credentials:
        """Returns the credentials with what the role gives now; the same object if that is what they have. A role that
        gives nothing, or is not allowed, leaves them without a secret."""
        if not credentials.is_ambient:
            return credentials
        given = self._current(credentials.provider) if settings.AMBIENT_CREDENTIALS else _Given()
        extra = {**credentials.extra, **given.extra}
        if (credentials.secret, credentials.extra) == (given.secret, extra):
            return credentials
        return replace(credentials, secret=given.secret, extra=extra)

    def _current(self, provider: str) -> _Given:
        with self._lock:
            if time.monotonic() >= self._resting.get(provider, 0.0):
                self._ask(provider)
            return self._last.get(provider, _Given())

    def _ask(self, provider: str) -> None:
        try:
            self._last[provider] = self._sources[provider]()
        except Exception as error:
            # Three vendors' libraries and the answers of their servers: what was given last may still hold.
            if provider not in self._resting:
                logger.warning("ambient.refused provider=%s error=%s", provider, type(error).__name__)
            self._resting[provider] = time.monotonic() + self._rest_seconds
        else:
            self._resting.pop(provider, None)

    def _aws(self) -> _Given:
        # botocore renews what expires, a quarter of an hour before.
        keys = self._aws_role.get_frozen_credentials()
        session = {"session_token": keys.token} if keys.token else {}
        return _Given(extra={"access_key_id": keys.access_key, "secret_access_key": keys.secret_key, **session})

    @cached_property
    def _aws_role(self) -> Any:
        import botocore.session

        found = botocore.session.get_session().get_credentials()
        if found is None:
            raise LookupError("boto3's chain has no credentials")
        return found

    def _google(self) -> _Given:
        from google.auth.transport.requests import Request

        account = self._google_account
        expires_at = account.expiry.replace(tzinfo=UTC).timestamp() if account.token and account.expiry else 0.0
        if expires_at - time.time() < _RENEW_BEFORE:
            account.refresh(partial(Request(), timeout=_TIMEOUT))
        return _Given(account.token)

    @cached_property
    def _google_account(self) -> Any:
        import google.auth

        return google.auth.default(scopes=[SCOPE])[0]

    def _azure(self) -> _Given:
        token = self._azure_token
        if token is None or token.expires_at - time.time() < _RENEW_BEFORE:
            token = self._azure_token = _azure_token(os.environ)
        return _Given(token.value)


def _azure_token(environ: Mapping[str, str]) -> AccessToken:
    """https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow, with a federated token."""
    import requests

    login = environ.get("AZURE_AUTHORITY_HOST", _AZURE_LOGIN).rstrip("/")
    form = {
        "grant_type": "client_credentials",
        "client_id": environ["AZURE_CLIENT_ID"],
        "client_assertion_type": _ASSERTION,
        "client_assertion": Path(environ["AZURE_FEDERATED_TOKEN_FILE"]).read_text(encoding="ascii").strip(),
        "scope": _AZURE_SCOPE,
    }
    answer = requests.post(f"{login}/{environ['AZURE_TENANT_ID']}/oauth2/v2.0/token", data=form, timeout=_TIMEOUT)
    answer.raise_for_status()
    token = answer.json()
    return AccessToken(token["access_token"], time.time() + float(token["expires_in"]))


_roles = Roles()
resolved = _roles.resolved
