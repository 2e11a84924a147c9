from __future__ import annotations

import ipaddress

import pytest

from core.errors import ValidationError
from integrations.transport import addresses
from integrations.transport.addresses import check_base_url, check_form


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Returns the table of the names that resolve, which replaces the system's resolver in every test here."""
    known = {"api.openai.com": "104.18.6.192", "rebound.example": "127.0.0.1", "metadata.example": "169.254.169.254"}

    def resolved(host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
        return [ipaddress.ip_address(known[host])] if host in known else []

    monkeypatch.setattr(addresses, "resolved", resolved)
    return known


@pytest.mark.parametrize(
    "base_url",
    [
        "https://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://8.8.8.8/v1",
        "https://[2606:4700::6810:6c0]/v1",
        "https://[64:ff9b::808:808]/v1",
        "https://unresolved.example",
    ],
)
def test_check_base_url__public__accepted(base_url: str) -> None:
    check_base_url(base_url, allow_private=False)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:8080/v1",
        "https://127.0.0.1/v1",
        "http://localhost/v1",
        "http://LOCALHOST./v1",
        "http://0.0.0.0/v1",
        "http://10.0.0.1/v1",
        "http://172.16.0.1/v1",
        "http://192.168.1.1/v1",
        "http://169.254.169.254/latest",
        "http://100.64.0.1/v1",
        "http://[::1]/v1",
        "http://[fe80::1]/v1",
        "http://[fd00::1]/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "http://2130706433/v1",
        "http://0x7f.1/v1",
        "http://127.1/v1",
        "http://intranet/v1",
        "http://db.internal/v1",
        "https://rebound.example/v1",
        "https://metadata.example/v1",
        "http://224.0.0.1/v1",
        "http://192.0.0.192/v1",
        "http://168.63.129.16/v1",
        "http://100.100.100.200/v1",
        "http://0177.0.0.1/v1",
        "http://[::7f00:1]/v1",
        "http://[::ffff:0:7f00:1]/v1",
        "http://[64:ff9b::7f00:1]/v1",
        "http://[2002:7f00:1::]/v1",
        "http://[2001:0:7f00:1::]/v1",
        "http://[fec0::1]/v1",
        "http://[ff02::1]/v1",
    ],
)
def test_check_base_url__private__only_when_allowed(base_url: str) -> None:
    with pytest.raises(ValidationError, match="private") as caught:
        check_base_url(base_url, allow_private=False)
    assert caught.value.details is not None
    assert list(caught.value.details) == ["base_url"]
    check_base_url(base_url, allow_private=True)


def test_check_base_url__http_to_a_public_host__refused() -> None:
    with pytest.raises(ValidationError, match="https"):
        check_base_url("http://api.openai.com/v1", allow_private=True)


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "api.openai.com/v1",
        "ftp://api.openai.com",
        "file:///etc/passwd",
        "https://",
        "https:///v1",
        "https://user:key@api.openai.com",
        "https://api.openai.com?x=1",
        "https://api.openai.com#x",
        "https://api.openai.com:port",
        "https://api.openai.com/\r\nx: y",
        "https://api.öpenai.com",
        "https://[::1",
    ],
)
def test_check_form__no_address__refused(base_url: str) -> None:
    with pytest.raises(ValidationError, match="base_url"):
        check_form(base_url)
