"""Sends requests to a fake by the official SDK of its vendor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import boto3
import httpx
from anthropic import Anthropic
from botocore.config import Config
from cohere import ClientV2
from google.genai import Client, types
from google.oauth2.credentials import Credentials as Token
from mistralai.client import Mistral
from openai import AzureOpenAI, OpenAI

from integrations.providers.base import Credentials

HALLO: list[Any] = [{"role": "user", "content": "Hallo"}]


def ask(access: Credentials, *, stream: bool = False, **more: Any) -> None:
    """Sends a request of these parameters and reads the whole answer, with the exceptions of the SDK."""
    _ASKED.get(access.provider, _ask_openai)(access, stream, more)


def _ask_anthropic(access: Credentials, stream: bool, more: Mapping[str, Any]) -> None:
    given: Any = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": HALLO, **more}
    with Anthropic(api_key=access.secret, base_url=access.base_url, max_retries=0) as client:
        if stream:
            with client.messages.stream(**given) as events:
                events.get_final_message()
        else:
            client.messages.create(**given)


def _ask_bedrock(access: Credentials, stream: bool, more: Mapping[str, Any]) -> None:
    extra = access.extra
    session = boto3.Session(extra["access_key_id"], extra["secret_access_key"], region_name=extra["region"])
    config = Config(retries={"total_max_attempts": 1})
    given = {"modelId": "amazon.nova-lite-v1:0", "messages": [{"role": "user", "content": [{"text": "Hallo"}]}], **more}
    with closing(session.client("bedrock-runtime", endpoint_url=access.base_url, config=config)) as client:
        if stream:
            with closing(client.converse_stream(**given)["stream"]) as events:
                list(events)
        else:
            client.converse(**given)


def google_client(access: Credentials) -> Client:
    """Returns the client of the Gemini API, or of Vertex AI."""
    options = types.HttpOptions(base_url=access.base_url, retry_options=types.HttpRetryOptions(attempts=1))
    if access.provider == "google":
        return Client(api_key=access.secret, http_options=options)
    token = Token(token=access.secret)  # type: ignore[no-untyped-call]  # google-auth leaves it unannotated
    return Client(
        vertexai=True,
        project=access.extra["project"],
        location=access.extra["location"],
        credentials=token,
        http_options=options,
    )


def _ask_google(access: Credentials, stream: bool, more: Mapping[str, Any]) -> None:
    given: Any = {"model": "gemini-2.5-flash", "contents": "Hallo", **more}
    with google_client(access) as client:
        if stream:
            list(client.models.generate_content_stream(**given))
        else:
            client.models.generate_content(**given)


def _ask_cohere(access: Credentials, stream: bool, more: Mapping[str, Any]) -> None:
    given: Any = {"model": "command-a-03-2025", "messages": HALLO, "request_options": {"max_retries": 0}, **more}
    with httpx.Client() as transport:
        client = ClientV2(api_key=access.secret, base_url=access.base_url, httpx_client=transport)
        if stream:
            list(client.chat_stream(**given))
        else:
            client.chat(**given)


def _ask_mistral(access: Credentials, stream: bool, more: Mapping[str, Any]) -> None:
    given: Any = {"model": "mistral-small-latest", "messages": HALLO, **more}
    with Mistral(api_key=access.secret, server_url=access.base_url.removesuffix("/v1")) as client:
        if stream:
            with client.chat.stream(**given) as events:
                list(events)
        else:
            client.chat.complete(**given)


def _ask_openai(access: Credentials, stream: bool, more: Mapping[str, Any]) -> None:
    given: Any = {"model": "m-1", "messages": HALLO, "stream": stream, **more}
    client: OpenAI = OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0)
    if access.provider == "azure_openai":
        version = "2024-10-21"
        client = AzureOpenAI(azure_endpoint=access.base_url, api_key=access.secret, api_version=version, max_retries=0)
    with client:
        answer = client.chat.completions.create(**given)
        if stream:
            list(answer)


_ASKED: Mapping[str, Callable[[Credentials, bool, Mapping[str, Any]], None]] = {
    "anthropic": _ask_anthropic,
    "bedrock": _ask_bedrock,
    "google": _ask_google,
    "google_vertex": _ask_google,
    "cohere": _ask_cohere,
    "mistral": _ask_mistral,
}
