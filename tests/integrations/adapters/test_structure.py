"""Tests that an adapter refuses a client's request or makes one in the form that its vendor documents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.adapters.requests import requests
from tests.integrations.adapters.rules import assert_taken
from tests.integrations.adapters.subject import subject_of
from tests.night import examples

# The list of models has one of every generation that takes its requests in another form.
MODELS = [
    ("anthropic", "claude-3-haiku-20240307"),
    ("anthropic", "claude-3-7-sonnet-20250219"),
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-opus-4-6"),
    ("anthropic", "claude-opus-4-8"),
    ("bedrock", "anthropic.claude-3-haiku-20240307-v1:0"),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("bedrock", "us.amazon.nova-2-lite-v1:0"),
    ("bedrock", "openai.gpt-oss-120b-1:0"),
    ("google", "gemma-3-27b-it"),
    ("google", "gemini-2.5-pro"),
    ("google", "gemini-3-pro-preview"),
    ("google", "gemini-4-argon"),
    ("google_vertex", "gemini-2.5-flash"),
    ("google_vertex", "mistral-medium-3"),
    ("google_vertex", "meta/llama-3.3-70b-instruct-maas"),
    ("cohere", "command-a-03-2025"),
    ("cohere", "command-a-reasoning-08-2025"),
    ("mistral", "mistral-small-latest"),
    ("mistral", "magistral-medium-latest"),
    ("openai", "gpt-5.2"),
    ("deepseek", "deepseek-chat"),
    ("groq", "llama-3.3-70b-versatile"),
]
# The rules of Mistral and other publishers apply to their models on Vertex AI.
PUBLISHERS = {"mistral-medium-3": "mistral", "meta/llama-3.3-70b-instruct-maas": "openai"}


@settings(
    max_examples=examples(10, 35),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(fields=requests(), crosses_vendor=st.booleans())
@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_request__anything__refused_or_as_the_vendor_takes_it(
    provider: str, model: str, fields: dict[str, Any], crosses_vendor: bool
) -> None:
    subject = replace(subject_of(provider), model=model)
    try:
        upstream = subject.build(crosses_vendor=crosses_vendor, **fields)
    except UnsupportedParameterError as refused:
        assert refused.message
        return
    body = json.loads(upstream.body)
    if not body.get("messages", body.get("contents")):
        return  # The conversation is blank, which the vendor's own error describes best.
    assert_taken(PUBLISHERS.get(model, provider), body)
