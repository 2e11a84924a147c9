"""Tests the fakes of the calls that cost nothing against the vendors' own SDKs."""

from __future__ import annotations

import httpx
import openai
import pytest
from anthropic import Anthropic
from cohere import Client as Cohere
from google.genai import types
from mistralai.client import Mistral
from openai import AzureOpenAI, OpenAI

from tests.fakes.cheap_calls import cheap_call
from tests.fakes.dialects import google
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.integrations.fakes.sdks import google_client


@pytest.mark.parametrize("provider", ["openai", "groq", "deepseek", "xai", "fireworks", "cerebras", "vllm", "mistral"])
def test_openai_dialect__models__as_the_sdk_reads_them(server: DialectServer, provider: str) -> None:
    access = FAKES[provider].credentials(server.base_url(provider))
    server.play(provider, cheap_call(provider))
    with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["fake-1"]
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="another").models.list()


def test_azure__models__as_the_sdk_reads_them(server: DialectServer) -> None:
    access = FAKES["azure_openai"].credentials(server.base_url("azure"))
    server.play("azure", cheap_call("azure_openai"))
    with AzureOpenAI(azure_endpoint=access.base_url, api_key=access.secret, api_version="2024-10-21") as client:
        assert [model.id for model in client.models.list()] == ["gpt-4o-mini"]


def test_anthropic__models__as_the_sdk_reads_them(server: DialectServer) -> None:
    access = FAKES["anthropic"].credentials(server.base_url("anthropic"))
    server.play("anthropic", cheap_call("anthropic"))
    with Anthropic(api_key=access.secret, base_url=access.base_url, max_retries=0) as client:
        assert [model.id for model in client.models.list(limit=1)] == ["claude-sonnet-5"]


def test_google__models_and_count__as_the_sdk_reads_them(server: DialectServer) -> None:
    server.play("google", cheap_call("google"))
    gemini = google_client(google.FAKE.credentials(server.base_url("google")))
    vertex = google_client(google.VERTEX_FAKE.credentials(server.base_url("google_vertex")))
    page = gemini.models.list(config=types.ListModelsConfig(query_base=True, page_size=1)).page
    assert [model.name for model in page] == ["models/gemini-2.5-flash"]
    server.play("google_vertex", cheap_call("google_vertex"))
    counted = vertex.models.count_tokens(model="gemini-2.5-flash", contents="Hi")
    assert counted.total_tokens == 1


def test_cohere__models__as_the_sdk_reads_them(server: DialectServer) -> None:
    access = FAKES["cohere"].credentials(server.base_url("cohere"))
    server.play("cohere", cheap_call("cohere"))
    with httpx.Client() as transport:
        client = Cohere(api_key=access.secret, base_url=access.base_url, httpx_client=transport)
        assert [model.name for model in client.models.list(page_size=1).models] == ["command-a-03-2025"]


def test_mistral__models__as_the_sdk_reads_them(server: DialectServer) -> None:
    server.play("mistral-sdk", cheap_call("mistral"))
    with Mistral(api_key=FAKES["mistral"].credentials("").secret, server_url=server.base_url("mistral-sdk")) as client:
        assert len(client.models.list().data or []) == 1
