from __future__ import annotations

import ipaddress

import pytest

from core.errors import ValidationError
from integrations.transport import addresses
from integrations.transport.addresses import check_base_url, check_form
from tests.tables.cases import tabled


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Returns the table of the names that resolve, which replaces the system's resolver in every test here."""
    known = {"api.openai.com": "104.18.6.192", "rebound.example": "127.0.0.1", "metadata.example": "169.254.169.254"}

    def resolved(host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
        return [ipaddress.ip_address(known[host])] if host in known else []

    monkeypatch.setattr(addresses, "resolved", resolved)
    return known


@tabled
def test_check_base_url__public__accepted(base_url: str) -> None:
    check_base_url(base_url, allow_private=False)


@tabled
def test_check_base_url__private__only_when_allowed(base_url: str) -> None:
    with pytest.raises(ValidationError, match="private") as caught:
        check_base_url(base_url, allow_private=False)
    assert caught.value.details is not None
    assert list(caught.value.details) == ["base_url"]
    check_base_url(base_url, allow_private=True)


def test_check_base_url__http_to_a_public_host__refused() -> None:
    with pytest.raises(ValidationError, match="https"):
        check_base_url("http://api.openai.com/v1", allow_private=True)


@tabled
def test_check_form__no_address__refused(base_url: str) -> None:
    with pytest.raises(ValidationError, match="base_url"):
        check_form(base_url)
