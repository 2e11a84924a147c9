"""Tests that an adapter refuses a client's request or makes one in the form that its vendor documents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.adapters.requests import requests
from tests.integrations.adapters.rules import assert_taken
from tests.integrations.adapters.subject import subject_of
from tests.night import examples
from tests.tables.cases import tabled

# The rules of Mistral and other publishers apply to their models on Vertex AI.
PUBLISHERS = {"mistral-medium-3": "mistral", "meta/llama-3.3-70b-instruct-maas": "openai"}


@settings(
    max_examples=examples(10, 35),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(fields=requests(), crosses_vendor=st.booleans())
@tabled
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
