from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from core.errors import ApplicationError
from core.http.failures import failure

logger = logging.getLogger("core.logins")


class TooManyLoginsError(ApplicationError):
    status = 429
    type = "rate_limit_error"
    code = "too_many_logins"


def client_address(request: HttpRequest) -> str:
    """Returns the client of the operator's outermost proxy; earlier entries of X-Forwarded-For could be forged."""
    peer: str = request.META.get("REMOTE_ADDR") or ""
    if not settings.TRUSTED_PROXIES:
        return peer
    addresses = [address.strip() for address in request.headers.get("X-Forwarded-For", "").split(",")]
    named = [address for address in addresses if address]
    return named[-settings.TRUSTED_PROXIES] if len(named) >= settings.TRUSTED_PROXIES else peer


def locked_out(request: HttpRequest, *_: Any) -> HttpResponse:
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    logger.warning("login.locked client=%s seconds=%d", client_address(request), seconds)
    message = f"Too many logins under this name failed from here. Try again in {_duration(seconds)}."
    return failure(request, TooManyLoginsError(message, headers={"retry-after": str(seconds)}))


def _duration(seconds: int) -> str:
    return f"{seconds} seconds" if seconds < 120 else f"{round(seconds / 60)} minutes"
