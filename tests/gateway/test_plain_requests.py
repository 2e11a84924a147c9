"""Tests that a request in which nothing has to change is recognised without decoding it, and no other one is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.protocol.wire import LazyFields, decode_request, is_plain
from integrations.providers.base import ChatRequest
from integrations.providers.errors import ProviderError, UnsupportedParameterError
from integrations.providers.openai.adapter import OPENAI
from integrations.providers.openai.compatible import ADAPTERS
from integrations.providers.openai.dialect import Dialect
from integrations.providers.openai.request import BodyBuilder

DIALECTS = [OPENAI, *(adapter.dialect for adapter in ADAPTERS.values())]
TEXT = st.sampled_from(["Hi", "null", '"thinking"', '"models": 1', "\\u0041", "ü", '"cache_control"'])
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "document_url"])},
    optional={
        "text": TEXT,
        "image_url": st.just({"url": "https://example.org/a.png"}),
        "document_url": st.just({"url": "https://example.org/a.pdf"}),
        "cache_control": st.just({"type": "ephemeral"}),
    },
)
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "developer"]),
        "content": TEXT | st.lists(PART, max_size=2),
    },
    optional={"name": TEXT, "reasoning_content": TEXT, "is_error": st.booleans()},
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "models": st.sampled_from([None, ["b"]]),
    "provider": st.sampled_from([None, {"only": ["x"]}]),
    "prompt_config": st.sampled_from([None, "", "p"]),
    "prompt_variables": st.sampled_from([None, {}, {"a": 1}]),
    "thinking": st.sampled_from([None, {"type": "enabled", "budget_tokens": 1024}]),
    "temperature": st.sampled_from([None, 0.5]),
    "n": st.sampled_from([None, 1]),
    "user": TEXT,
    "logit_bias": st.sampled_from([None, {}, {"1": 2}]),
    "logprobs": st.booleans(),
    "top_logprobs": st.just(2),
    "presence_penalty": st.just(0.5),
    "frequency_penalty": st.just(0.5),
    "max_completion_tokens": st.just(9),
    "response_format": st.just({"type": "json_object"}),
    "tool_choice": st.sampled_from(["auto", "none"]),
    "tools": st.just([{"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}]),
    "web_search_options": st.sampled_from([None, {}]),
    "stream": st.booleans(),
    "anything": TEXT,
}
BODIES = st.fixed_dictionaries({"model": st.just("m"), "messages": st.lists(MESSAGE, max_size=3)}, optional=FIELDS)


def built(builder: BodyBuilder, request: ChatRequest) -> Any:
    """Returns the body, decoded, and the warnings; or the refusal."""
    try:
        body, warnings = builder.build(request)
    except ProviderError as error:
        return error.message
    return msgspec.json.decode(body), warnings


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.provider)
@given(body=BODIES, escapes=st.booleans(), model=st.sampled_from(["m", "n"]))
def test_plain__any_request__as_when_decoded(dialect: Dialect, body: dict[str, Any], escapes: bool, model: str) -> None:
    written = msgspec.json.encode(body)
    if escapes:
        # Clients may write a name in other characters than its own.
        written = written.replace(b'"n":', rb'"\u006e":').replace(b'"models":', rb'"mode\u006cs":')
    try:
        read = decode_request(written)
    except ValidationError:
        return
    plain = read.model == model and is_plain(read, written)
    request = ChatRequest(model, read.stream is True, written, LazyFields(written))
    builder = BodyBuilder(dialect)
    found = built(builder, msgspec.structs.replace(request, is_plain=plain))
    assert found == built(builder, request)


def test_plain__nothing_to_change__the_very_bytes() -> None:
    body = b'{ "model":"m", "messages":[{"role":"user","content":"Hi"}], "store":false }'
    request = ChatRequest("m", False, body, LazyFields(body), is_plain=is_plain(decode_request(body), body))
    assert request.is_plain
    assert BodyBuilder(OPENAI).build(request)[0] is body


def test_plain__name_with_escapes__decoded() -> None:
    body = rb'{"model":"m","messages":[{"role":"user","content":"Hi"}],"\u006e":2}'
    request = ChatRequest("m", False, body, LazyFields(body), is_plain=True)
    groq = next(dialect for dialect in DIALECTS if dialect.provider == "groq")
    with pytest.raises(UnsupportedParameterError, match="gives one answer"):
        BodyBuilder(groq).build(request)
