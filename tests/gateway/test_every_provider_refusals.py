"""Refusals of every provider and dropped parameters, as the official openai SDK sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from integrations.providers.errors import UnsupportedParameterError
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import fails
from tests.fakes.dialects.story import Story
from tests.gateway.every_provider import ASK, PROVIDERS, dropped
from tests.gateway.service import Gateway
from tests.gateway.stage import Stage, model_of
from tests.integrations.adapters.subject import PDF, data_url, refusal_or_request, subject_of
from tests.integrations.adapters.test_parameters import JSON_SCHEMA

PDF_URL = data_url("application/pdf", PDF)
# Each of these fields requests another kind of answer, which its providers do not have; their adapters report that.
KINDS: dict[str, dict[str, Any]] = {
    "choices": {"n": 2},
    "audio": {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}},
    "schema": {"response_format": JSON_SCHEMA},
    "image": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_url()}}]}]},
    "document": {
        "messages": [{"role": "user", "content": [{"type": "document_url", "document_url": {"url": PDF_URL}}]}]
    },
}
LACKING = [
    (provider, name)
    for provider in PROVIDERS
    for name, fields in KINDS.items()
    if isinstance(refusal_or_request(subject_of(provider), **fields), UnsupportedParameterError)
]


@pytest.fixture(scope="module")
def client(stage: Stage) -> Iterator[openai.OpenAI]:
    with stage.gateway.openai() as made:
        yield made


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
def test_refusal__of_the_provider__a_400_with_its_words(
    stage: Stage, client: openai.OpenAI, provider: str, stream: bool
) -> None:
    stage.play(provider, fails(FAKES[provider], 400, "messages: too long by 7 tokens"))

    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model_of(provider), messages=ASK, stream=stream)

    assert caught.value.code == "provider_rejected"
    assert "messages: too long by 7 tokens" in caught.value.message


@pytest.mark.parametrize("provider", PROVIDERS)
def test_refusal__prompt_too_long_for_the_model__a_400_of_its_own_with_the_vendors_object(
    stage: Stage, client: openai.OpenAI, provider: str
) -> None:
    words = "The prompt is too long: 205930 tokens > 200000 maximum"
    stage.play(provider, fails(FAKES[provider], 400, words))

    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model_of(provider), messages=ASK)

    error: Any = caught.value.body
    assert (caught.value.code, caught.value.type) == ("context_length_exceeded", "invalid_request_error")
    assert (error["provider_error"]["provider"], error["provider_error"]["status"]) == (provider, 400)
    assert words in json.dumps(error["provider_error"]["error"])


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
def test_parameters__dropped__named_in_the_warning_header(stage: Stage, provider: str, stream: bool) -> None:
    fields: dict[str, Any] = {
        "seed": 7,
        "logit_bias": {"50256": -100},
        "user": "user-7",
        "store": True,
        "messages": ASK,
    }
    expected = subject_of(provider).build(**fields, stream=stream).warnings
    stage.play(provider, Story(text="Fine."))

    response = stage.gateway.post({"model": model_of(provider), **fields, "stream": stream})

    assert response.status_code == 200, response.text
    assert dropped(response.headers) == list(expected)


@pytest.mark.parametrize(("provider", "parameter"), LACKING)
def test_parameter__of_another_kind__refused_by_name_and_never_sent(
    stage: Stage, client: openai.OpenAI, provider: str, parameter: str
) -> None:
    script = stage.play(provider, Story(text="never"))
    arguments: dict[str, Any] = {"model": model_of(provider), "messages": ASK, **KINDS[parameter]}

    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**arguments)

    assert caught.value.code == "unsupported_parameter"
    assert next(name for name in KINDS[parameter] if name != "audio") in caught.value.message
    assert not script.received


@pytest.mark.parametrize("provider", PROVIDERS)
def test_secret__echoed_by_the_provider__never_reaches_the_client(stage: Stage, provider: str) -> None:
    credentials = FAKES[provider].credentials("https://unused.test")
    secrets = {value for value in (credentials.secret, *credentials.extra.values()) if len(value) > 15}
    stage.play(provider, fails(FAKES[provider], 400, f"no such key: {' '.join(secrets)}"))
    gateway: Gateway = stage.gateway

    response = gateway.post({"model": model_of(provider), "messages": ASK})

    assert response.status_code == 400
    assert secrets
    for secret in secrets:
        assert secret not in response.text
        assert secret not in str(response.headers)
