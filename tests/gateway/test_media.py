"""Images and documents by address, through a running gateway: fetched for providers that take bytes, else passed on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.server import fails
from tests.fakes.dialects.story import ReadRequest, Story
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import GatewayService
from tests.gateway.stage import Stage, model_of, staged
from tests.gateway.wire import assert_error
from tests.integrations.adapters.subject import PDF, PNG, subject_of
from tests.integrations.adapters.test_media import document, fetches, image

SEEING = [provider for provider in distinct_providers() if FAKES[provider].can.images]
READING = [provider for provider in distinct_providers() if FAKES[provider].can.documents]
FETCHING = [name for name in SEEING if fetches(subject_of(name), image("https://files.test/picture.png"))]
FILES = {
    "/picture.png": (200, "image/png", PNG),
    "/report.pdf": (200, "application/pdf", PDF),
    "/lies.png": (200, "image/png", b"<!doctype html><title>Log in</title>"),
}


async def _serve(request: Received, connection: Connection) -> None:
    path = request.path.partition("?")[0]
    status, kind, body = FILES.get(path, (404, "text/plain", b"no such file"))
    await connection.send_whole(status, body, {"content-type": kind})


@pytest.fixture(scope="module")
def files() -> Iterator[UpstreamServer]:
    with UpstreamServer(_serve) as server:
        yield server


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Every provider, on a gateway that may fetch from its own network, where the tests' files are."""
    settings = {**LONG_TIMEOUTS, "ALLOW_PRIVATE_MEDIA": "1"}
    with GatewayService(workers=1, settings=settings) as service, staged(service) as made:
        yield made


@pytest.fixture(scope="module")
def guarded(service: GatewayService) -> Iterator[Stage]:
    """Every provider, on a gateway that may not fetch from its own network, as by default."""
    with staged(service) as made:
        yield made


def asking(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, *parts]}]


def ask(
    stage: Stage, provider: str, files: UpstreamServer, part: dict[str, Any], *, stream: bool
) -> tuple[ReadRequest, int]:
    """Returns the request that the provider received, and how often a file was fetched for it."""
    before = len(files.received)
    stage.play(provider, Story(text="A picture."))
    content = {"model": model_of(provider), "messages": asking(part), "stream": stream}
    response = stage.gateway.post(content)
    assert response.status_code == 200, response.text
    (received,) = stage.requests_of(provider)
    return received, len(files.received) - before


@pytest.mark.parametrize("provider", SEEING)
@pytest.mark.parametrize("stream", [False, True])
def test_image__by_address__arrives_as_the_provider_takes_it(
    stage: Stage, files: UpstreamServer, provider: str, stream: bool
) -> None:
    url = f"{files.url}/picture.png?signed=canary-query"
    request, fetched = ask(stage, provider, files, image(url), stream=stream)
    needs = bool(fetches(subject_of(provider), image(url)))
    assert request.images == ((("image/png", PNG),) if needs else (("url", url),))
    assert fetched == needs


@pytest.mark.parametrize("provider", READING)
def test_document__by_address__arrives_as_the_provider_takes_it(
    stage: Stage, files: UpstreamServer, provider: str
) -> None:
    url = f"{files.url}/report.pdf"
    request, fetched = ask(stage, provider, files, document(url), stream=False)
    needs = bool(fetches(subject_of(provider), document(url)))
    assert request.documents == ((("application/pdf", PDF),) if needs else (("url", url),))
    assert fetched == needs


def test_image__provider_replaced_by_another__fetched_once_for_both(stage: Stage, files: UpstreamServer) -> None:
    first, second, *_ = FETCHING
    before = len(files.received)
    stage.play(first, fails(FAKES[first], 503, "away"))
    stage.play(second, Story(text="A picture."))
    content = {
        "model": model_of(first),
        "models": [model_of(second)],
        "messages": asking(image(f"{files.url}/picture.png")),
    }
    response = stage.gateway.post(content)
    assert response.status_code == 200, response.text
    assert response.headers["x-svc-provider"] == second
    assert stage.requests_of(second)[-1].images == (("image/png", PNG),)
    assert len(files.received) - before == 1


@pytest.mark.parametrize("path", ["/missing.png", "/lies.png"])
def test_image__that_cannot_be_had__refused_by_host_and_without_the_query(
    stage: Stage, files: UpstreamServer, path: str
) -> None:
    script = stage.play(FETCHING[0], Story(text="never"))
    part = image(f"{files.url}{path}?signed=canary-query")
    response = stage.gateway.post({"model": model_of(FETCHING[0]), "messages": asking(part)})
    message = assert_error(response, 400, "invalid_value")
    assert "127.0.0.1" in message
    assert "canary-query" not in message
    assert not script.received


def test_image__in_the_gateways_own_network__never_fetched_by_default(guarded: Stage, files: UpstreamServer) -> None:
    before = len(files.received)
    script = guarded.play(FETCHING[0], Story(text="never"))
    part = image(f"{files.url}/picture.png")
    response = guarded.gateway.post({"model": model_of(FETCHING[0]), "messages": asking(part)})
    assert_error(response, 400, "invalid_value")
    assert len(files.received) == before
    assert not script.received
