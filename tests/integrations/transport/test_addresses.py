"""Tests the addresses that a transport connects to: the gateway resolves the name, and connects to the checked
address."""

from __future__ import annotations

import pytest

from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.factory import create_transport
from integrations.transport.resolver import AddressPolicy, Resolver, any_address, as_named, only_public
from tests.fakes.raw_server import answer, answering, raw_server
from tests.integrations.names import Names
from tests.integrations.transport.requests import fetch

METADATA = "169.254.169.254"


@pytest.fixture(params=["pool", "aiohttp"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return str(request.param)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", METADATA, "::1", "::ffff:127.0.0.1", "fd00::1"])
async def test_send__public_name_for_a_private_address__refused(kind: str, address: str) -> None:
    transport = create_transport(kind, lookup=Names(api_example_com=[[address]]))
    with pytest.raises(ProviderError) as caught:
        await fetch(transport, "http://api.example.com/v1/chat?key=s")
    await transport.close()
    assert caught.value.kind is FailureKind.UNAVAILABLE
    assert "api.example.com" in caught.value.message
    assert "ALLOW_PRIVATE_UPSTREAMS" in caught.value.message
    assert address not in caught.value.message


async def test_send__public_name_for_a_private_address_and_private_allowed__connects(kind: str) -> None:
    async with raw_server(answering(answer(b"inside"))) as server:
        transport = create_transport(kind, allow_private=True, lookup=Names(api_example_com=[["127.0.0.1"]]))
        assert await fetch(transport, f"http://api.example.com:{server.port}/") == b"inside"
        await transport.close()


@pytest.mark.parametrize("host", ["llm.internal", "ollama", "models.lan"])
async def test_send__local_name__connects(kind: str, host: str) -> None:
    async with raw_server(answering(answer(b"inside"))) as server:
        names = Names(llm_internal=[["127.0.0.1"]], ollama=[["127.0.0.1"]], models_lan=[["127.0.0.1"]])
        transport = create_transport(kind, lookup=names)
        assert await fetch(transport, f"http://{host}:{server.port}/") == b"inside"
        await transport.close()


async def test_send__literal_private_address__connects_without_a_lookup(kind: str) -> None:
    names = Names()
    async with raw_server(answering(answer(b"inside"))) as server:
        transport = create_transport(kind, lookup=names)
        assert await fetch(transport, server.url) == b"inside"
        await transport.close()
    assert names.resolved == []


async def test_send__kept_alive_connection__is_not_looked_up_again(kind: str) -> None:
    names = Names(ollama=[["127.0.0.1"], [METADATA]])
    async with raw_server(answering(answer())) as server:
        transport = create_transport(kind, lookup=names)
        for _ in range(3):
            await fetch(transport, f"http://ollama:{server.port}/")
        await transport.close()
    assert names.resolved == ["ollama"]


async def test_send__unknown_name__is_unreachable(kind: str) -> None:
    transport = create_transport(kind, lookup=Names(api_example_com=[[]]))
    with pytest.raises(ProviderError, match=r"^No connection to api\.example\.com$"):
        await fetch(transport, "http://api.example.com/")
    await transport.close()


async def test_send__first_address_does_not_answer__the_next_is_tried(kind: str) -> None:
    async with raw_server(answering(answer(b"second"))) as server:
        transport = create_transport(kind, lookup=Names(twice_internal=[["127.0.0.2", "127.0.0.1"]]))
        assert await fetch(transport, f"http://twice.internal:{server.port}/") == b"second"
        await transport.close()


async def test_send__proxy_under_a_public_name_on_a_private_address__is_used(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(proxy_example_com=[["127.0.0.1"]])
    async with raw_server(answering(answer(b"by proxy"))) as through:
        monkeypatch.setenv("HTTP_PROXY", f"http://proxy.example.com:{through.port}")
        transport = create_transport(kind, lookup=names)
        assert await fetch(transport, "http://upstream.example.com/v1/chat") == b"by proxy"
        await transport.close()
    assert names.resolved == ["proxy.example.com"]


@pytest.mark.parametrize("policy", [as_named, only_public])
async def test_addresses__public_and_private_ones__only_the_public_are_left(policy: AddressPolicy) -> None:
    resolver = Resolver(policy, Names(api_example_com=[["10.0.0.1", "93.184.216.34", "::1"]]))
    assert await resolver.addresses("api.example.com", 443) == ["93.184.216.34"]


async def test_addresses__system_lookup_of_no_name__is_an_os_error() -> None:
    with pytest.raises(OSError, match="is not a host name"):
        await Resolver(any_address).addresses("a..b", 443)
