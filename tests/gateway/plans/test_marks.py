"""The marks by which a body is known to stay as it is: without one of them, each adapter forwards the very bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.pipeline.marked_documents import MARK
from gateway.protocol.plain import NEVER_IN_PLAIN, plain_request
from gateway.protocol.wire import NULL, LazyFields, decode_request
from integrations.providers.base import ChatRequest, PassingAdapter
from integrations.registry import adapter_for, providers
from tests.gateway.plans.forms import PLAIN_BODIES
from tests.gateway.test_plain_requests import BODIES
from tests.integrations.adapters.subject import subject_of

ADAPTERS = [adapter for name in sorted(providers()) if isinstance(adapter := adapter_for(name), PassingAdapter)]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.provider)
@given(body=BODIES, escapes=st.booleans())
def test_body__without_a_mark__stays(adapter: Any, body: dict[str, Any], escapes: bool) -> None:
    written = msgspec.json.encode(body)
    if escapes:
        written = written.replace(b'"n":', rb'"\u006e":')
    try:
        read = decode_request(written)
    except ValidationError:
        return
    own = (read.models, read.provider, read.prompt_config, read.prompt_variables, read.thinking)
    if read.stream or own != (None,) * 5 or any(mark in written for mark in (*adapter.marks, MARK, NULL)):
        return

    request = ChatRequest("m", False, written, LazyFields(written), is_plain=True)

    assert adapter.forwarded(request) == written
    assert adapter.build_request(request, subject_of(adapter.provider).credentials).body is written


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.provider)
@given(body=PLAIN_BODIES, escapes=st.booleans())
def test_body_of_plain_form__without_a_mark_that_it_may_have__stays(
    adapter: Any, body: dict[str, Any], escapes: bool
) -> None:
    written = json.dumps(body, separators=(",", ":")).encode()
    if escapes:
        written = written.replace(b'"n":', rb'"\u006e":').replace(b'"user":', rb'"\u0075ser":')
    read = plain_request(written)
    marks = set(adapter.marks) - NEVER_IN_PLAIN
    if read is None or read.stream or read.prompt_config is not None or any(mark in written for mark in marks):
        return

    request = ChatRequest("m", False, written, LazyFields(written), is_plain=True)

    built = adapter.build_request(request, subject_of(adapter.provider).credentials)
    assert (built.body, built.warnings) == (written, ())
    # An adapter that finds a mark in a text leaves the request to the stages, though it would change nothing.
    assert adapter.forwarded(request) in (written, None)


def test_adapters__that_pass_on__are_those_of_openais_dialect() -> None:
    assert {"openai", "azure_openai", "groq", "openai_compatible"} <= {adapter.provider for adapter in ADAPTERS}
