"""OAuth access tokens for integrations whose key is a Google service account.

google-auth makes and signs the assertion and reads the answer
(https://developers.google.com/identity/protocols/oauth2/service-account); it blocks, so it runs in a thread.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any
from urllib.parse import urlsplit

from integrations.providers.base import Credentials
from integrations.providers.common.redaction import scrub
from integrations.providers.errors import FailureKind, ProviderError

logger = logging.getLogger("integrations")

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_RENEW_BEFORE = 300.0  # The unit is seconds; a request that starts now must not outlive its token.
_TIMEOUT = 10.0  # One call of the token server may take ten seconds.
_REMEMBERED = 1024
_MESSAGE_LENGTH = 300
# google-auth lets these exceptions of Python through when the token server's answer is not the JSON object it expects.
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class AccessToken:
    value: str = field(repr=False)
    expires_at: float


class AccessTokens:
    """The access tokens of one worker, used from its event loop. Tokens are kept until five minutes before they expire,
    and concurrent requests for one account share one fetch.

    With `allow_private` the account may name any token server. Without it the server must be Google's: the file comes
    from the person who sets up the integration, and the request leaves from inside this network.
    """

    def __init__(self, *, allow_private: bool = False, clock: Callable[[], float] = time.time) -> None:
        self._allow_private = allow_private
        self._clock = clock
        self._known: dict[str, AccessToken] = {}
        self._fetching: dict[str, asyncio.Task[AccessToken]] = {}

    async def token_for(self, credentials: Credentials) -> str:
        """Raises ProviderError: CREDENTIALS if the account is unusable or refused, UNAVAILABLE without an answer."""
        account = hashlib.sha256(credentials.secret.encode()).hexdigest()
        known = self._known.get(account)
        now = self._clock()
        if known is not None and now < known.expires_at - _RENEW_BEFORE:
            return known.value
        try:
            # The fetch is shielded, so that a client that disconnects does not cancel it for the others that wait for
            # the same token.
            token = await asyncio.shield(self._fetch(account, credentials))
        except ProviderError:
            if known is not None and now < known.expires_at:
                return known.value
            raise
        return token.value

    def _fetch(self, account: str, credentials: Credentials) -> asyncio.Task[AccessToken]:
        task = self._fetching.get(account)
        if task is None:
            task = asyncio.create_task(self._fetched(account, credentials), name="access-token")
            self._fetching[account] = task
            task.add_done_callback(functools.partial(self._done, account))
        return task

    async def _fetched(self, account: str, credentials: Credentials) -> AccessToken:
        try:
            token = await asyncio.to_thread(fetch_token, credentials, allow_private=self._allow_private)
        except ProviderError as error:
            logger.warning(
                "access_token.refused", extra={"integration_id": credentials.integration_id, "kind": error.kind.value}
            )
            raise
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[account] = token
        return token

    def _done(self, account: str, task: asyncio.Task[AccessToken]) -> None:
        del self._fetching[account]
        if not task.cancelled():
            # Reading the exception marks it as retrieved, even when nobody waits for the task any more.
            task.exception()


def fetch_token(credentials: Credentials, *, allow_private: bool) -> AccessToken:
    # google-auth is imported here because importing it is slow and few projects use Vertex AI.
    from google.auth.exceptions import GoogleAuthError, RefreshError
    from google.auth.transport.requests import Request
    from google.oauth2 import service_account

    provider = credentials.provider
    info = _account_info(credentials, allow_private=allow_private)
    try:
        # google-auth annotates most of its code, but not the constructor of a service account's credentials.
        account = service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
            info, scopes=[SCOPE]
        )
    except (ValueError, GoogleAuthError):
        # The text of google-auth's exception is left out, since it may quote the key.
        raise _unusable(provider, "the service account's key cannot be read") from None
    try:
        account.refresh(functools.partial(Request(), timeout=_TIMEOUT))
    except RefreshError as error:
        raise _refused(provider, error) from None
    except GoogleAuthError as error:
        raise ProviderError(
            "the token server of the service account did not answer", kind=FailureKind.UNAVAILABLE, provider=provider
        ) from error
    except _UNREADABLE as error:
        raise ProviderError(
            "the token server of the service account answered with something that is not a token",
            kind=FailureKind.UNAVAILABLE,
            provider=provider,
        ) from error
    if not isinstance(account.token, str) or not account.token:
        raise _unusable(provider, "the token server of the service account gave no token")
    # A token without a lifetime counts as expired, so that its server is asked each time.
    expires_at = account.expiry.replace(tzinfo=UTC).timestamp() if account.expiry else 0.0
    return AccessToken(account.token, expires_at)


def _account_info(credentials: Credentials, *, allow_private: bool) -> dict[str, Any]:
    try:
        info = json.loads(credentials.secret)
    except ValueError:
        raise _unusable(credentials.provider, "the service account is not valid JSON") from None
    if not isinstance(info, dict) or info.get("type", "service_account") != "service_account":
        raise _unusable(credentials.provider, "the JSON is not a service account's")
    if not allow_private and not _is_googles(str(info.get("token_uri") or "")):
        raise _unusable(credentials.provider, "the service account names a token server that is not Google's")
    return info


def _is_googles(token_uri: str) -> bool:
    try:
        place = urlsplit(token_uri)
        host, port = (place.hostname or "").lower(), place.port
    except ValueError:
        return False
    return (
        place.scheme == "https"
        and port in (None, 443)
        and (host == "accounts.google.com" or host.endswith(".googleapis.com"))
    )


def _refused(provider: str, error: Any) -> ProviderError:
    """Quotes Google's error code and text, such as "invalid_grant: Account not found", which are the first arguments of
    `RefreshError`."""
    reason = scrub(str(error.args[0] if error.args else ""))[:_MESSAGE_LENGTH]
    kind = FailureKind.UNAVAILABLE if error.retryable else FailureKind.CREDENTIALS
    return ProviderError(f"no access token for the service account: {reason}", kind=kind, provider=provider)


def _unusable(provider: str, problem: str) -> ProviderError:
    return ProviderError(problem, kind=FailureKind.CREDENTIALS, provider=provider)
