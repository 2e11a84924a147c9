from __future__ import annotations

import pytest
from django.core.exceptions import DisallowedHost
from django.test import RequestFactory
from pytest_django import Settings

from agent.mcp.admission import require_known_origin
from core.errors import PermissionDeniedError
from tests.tables.cases import tabled

TRUSTED = ["https://hub.example", "https://*.inside.example"]


def ask(origin: str, host: str = "gateway.example") -> None:
    headers = {"Host": host, **({"Origin": origin} if origin else {})}
    require_known_origin(RequestFactory().post("/api/agent/mcp", headers=headers))


@pytest.fixture(autouse=True)
def known(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["gateway.example"]
    settings.CSRF_TRUSTED_ORIGINS = TRUSTED


@pytest.mark.parametrize(
    "origin",
    ["", "http://gateway.example", "https://hub.example", "https://a.inside.example", "https://a.b.inside.example"],
)
def test_origin__own_or_trusted__may_call(origin: str) -> None:
    ask(origin)


@tabled
def test_origin__any_other__may_not(origin: str) -> None:
    with pytest.raises(PermissionDeniedError) as refused:
        ask(origin)

    assert refused.value.code == "origin_not_allowed"


def test_host__that_is_not_ours__is_not_answered_for() -> None:
    with pytest.raises(DisallowedHost):
        ask("http://evil.example", host="evil.example")
