"""The time a request reached this process, before it waited for a thread and for its key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

ARRIVED_AT = "prompt_gateway.arrived_at"
"""The member of an ASGI scope that holds it."""

Application = Callable[[Any, Any, Any], Awaitable[None]]


def with_arrival(application: Application) -> Application:
    async def stamped(scope: Any, receive: Any, send: Any) -> None:
        await application({**scope, ARRIVED_AT: timezone.now()}, receive, send)

    return stamped


def arrived_at(request: HttpRequest) -> datetime:
    stamp = getattr(request, "scope", {}).get(ARRIVED_AT)
    return stamp if isinstance(stamp, datetime) else timezone.now()
