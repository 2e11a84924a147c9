from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIRequest
from django.test import AsyncRequestFactory, RequestFactory

from core.http.arrival import arrived_at, with_arrival


def test_arrival__behind_the_server__is_before_the_application_ran() -> None:
    seen: list[ASGIRequest] = []
    ran_at: list[datetime] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        ran_at.append(datetime.now(UTC))
        seen.append(ASGIRequest(scope, receive))

    before = datetime.now(UTC)
    scope = AsyncRequestFactory().get("/").scope
    async_to_sync(with_arrival(application))(scope, None, None)

    (request,) = seen
    assert before <= arrived_at(request) <= ran_at[0]
    assert arrived_at(request) == arrived_at(request)


def test_arrival__not_noted_by_the_server__is_now() -> None:
    for request in (RequestFactory().get("/"), AsyncRequestFactory().get("/")):
        before = datetime.now(UTC)
        assert before <= arrived_at(request) <= datetime.now(UTC)
