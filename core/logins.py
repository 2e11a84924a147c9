"""Logins that failed too often: whose they are, and what is answered. Counting is django-axes'."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from core.errors import ApplicationError
from core.failures import failure

logger = logging.getLogger("core.logins")


class TooManyLoginsError(ApplicationError):
    status = 429
    type = "rate_limit_error"
    code = "too_many_logins"


def client_address(request: HttpRequest) -> str:
    """The client of the outermost of our own proxies. What X-Forwarded-For says before it, anybody may have written."""
    peer: str = request.META.get("REMOTE_ADDR") or ""
    if not settings.TRUSTED_PROXIES:
        return peer
    told = [address.strip() for address in request.headers.get("X-Forwarded-For", "").split(",")]
    named = [address for address in told if address]
    return named[-settings.TRUSTED_PROXIES] if len(named) >= settings.TRUSTED_PROXIES else peer


def locked_out(request: HttpRequest, *_: Any) -> HttpResponse:
    """The same for names that exist and names that do not."""
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    logger.warning("login.locked client=%s seconds=%d", client_address(request), seconds)
    message = f"Too many logins under this name failed from here. Try again in {_duration(seconds)}."
    return failure(request, TooManyLoginsError(message, headers={"retry-after": str(seconds)}))


def _duration(seconds: int) -> str:
    return f"{seconds} seconds" if seconds < 120 else f"{round(seconds / 60)} minutes"
