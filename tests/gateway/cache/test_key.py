"""The cache key: two requests share an answer exactly when nothing that shapes it differs."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given
from msgspec.structs import replace

from gateway.cache.key import cache_key
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.project_settings.settings import ProjectSettings

PROJECT = str(uuid4())
SETTINGS = ProjectSettings()
TARGET = (1, "openai", "gpt-4o", "")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SHAPING: dict[str, st.SearchStrategy[Any]] = {
    "model": st.text(min_size=1),
    "messages": st.lists(
        st.fixed_dictionaries({"role": st.just("user"), "content": st.text()}), min_size=1, max_size=4
    ),
    "temperature": st.floats(0, 2),
    "max_tokens": st.integers(1, 10**6),
    "max_completion_tokens": st.integers(1, 10**6),
    "top_p": st.floats(0, 1),
    "n": st.integers(1, 10),
    "stop": st.text(min_size=1) | st.lists(st.text(), min_size=1, max_size=3),
    "frequency_penalty": st.floats(-2, 2),
    "presence_penalty": st.floats(-2, 2),
    "seed": st.integers(),
    "tools": st.lists(st.dictionaries(st.text(), JSON, min_size=1, max_size=3), min_size=1, max_size=2),
    "tool_choice": st.sampled_from(["none", "auto", "required"]),
    "response_format": st.fixed_dictionaries({"type": st.sampled_from(["text", "json_object"])}),
    "thinking": st.fixed_dictionaries({"type": st.just("enabled"), "budget_tokens": st.integers(1, 9999)}),
    "reasoning_effort": st.sampled_from(["low", "medium", "high"]),
    "models": st.lists(st.text(min_size=1), min_size=1, max_size=5),
    "provider": st.fixed_dictionaries({"order": st.lists(st.text(min_size=1), min_size=1, max_size=2)}),
    "logit_bias": st.dictionaries(st.text(), st.integers(-100, 100), min_size=1, max_size=3),
    "of_a_vendor": JSON.filter(lambda value: value is not None),
}
_REQUIRED = {name: SHAPING[name] for name in ("model", "messages")}
REQUESTS = st.fixed_dictionaries(
    _REQUIRED, optional={name: value for name, value in SHAPING.items() if name not in _REQUIRED}
)


def key_of(fields: dict[str, Any], project: str = PROJECT, **changes: Any) -> str:
    given: dict[str, Any] = {"prompt": ("", 0), "target": TARGET, "settings": SETTINGS, "stream": False, **changes}
    body = json.dumps(fields).encode()
    return cache_key(project, given["prompt"], given["target"], given["settings"], body, stream=given["stream"])


@given(request=REQUESTS, data=st.data())
def test_key__another_value_of_a_shaping_field__is_another_key(request: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SHAPING)))
    value = data.draw(SHAPING[name])
    assume(json.dumps(request.get(name), sort_keys=True) != json.dumps(value, sort_keys=True))
    # The version number is the same in both.
    assume(request.get(name) != value or isinstance(value, (bool, str, list, dict)))
    assert key_of({**request, name: value}) != key_of(request)


@given(request=REQUESTS, data=st.data())
def test_key__same_request_written_otherwise__is_the_same(request: dict[str, Any], data: st.DataObject) -> None:
    names = data.draw(st.permutations(list(request)))
    shuffled = {name: request[name] for name in names}
    ignored = {"user": data.draw(st.text()), "metadata": {"a": "b"}, "stream": False, "seed": request.get("seed")}
    body = json.dumps({**shuffled, **ignored}, indent=3, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assume(_is_text(request))
    assert cache_key(PROJECT, ("", 0), TARGET, SETTINGS, body, stream=False) == key_of(request)


def _is_text(request: Any) -> bool:
    try:
        json.dumps(request, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(request=REQUESTS)
def test_key__of_another_project_prompt_stream_or_setting__is_another(request: dict[str, Any]) -> None:
    version = str(uuid4())
    others = [
        key_of(request, str(uuid4())),
        key_of(request, prompt=(version, 1)),
        key_of(request, prompt=(version, 2)),
        key_of(request, prompt=(str(uuid4()), 1)),
        key_of(request, stream=True),
        key_of(request, target=(1, "openai", "gpt-4o-mini", "")),
        key_of(request, target=(1, "groq", "gpt-4o", "")),
        key_of(request, target=(2, "openai", "gpt-4o", "")),
        key_of(request, target=(1, "openai", "gpt-4o", "https://example.org")),
        key_of(request, settings=replace(SETTINGS, preferred_models=("a",))),
        key_of(request, settings=replace(SETTINGS, introspection_enabled=True)),
        key_of(request, settings=replace(SETTINGS, guardrails=GuardrailSettings(mask_output_pii=True))),
        key_of(request),
    ]
    assert len(set(others)) == len(others)


@pytest.mark.parametrize("parts", [[("ab", "c"), ("a", "bc")], [("a", "b"), ("b", "a")]])
def test_key__texts_moved_between_messages__is_another(parts: list[tuple[str, str]]) -> None:
    def conversation(texts: tuple[str, str]) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}

    assert key_of(conversation(parts[0])) != key_of(conversation(parts[1]))


LARGE: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x" * 100_000}]}


def test_key__of_a_large_request__knows_its_fields_and_their_order_does_not_matter() -> None:
    changed = [{**LARGE, "seed": 1}, {**LARGE, "seed": 2}, {**LARGE, "seed": 1.0}, {**LARGE, "model": "n"}, LARGE]
    assert len({key_of(request) for request in changed}) == len(changed)
    assert key_of({"user": "somebody", **dict(reversed(LARGE.items()))}) == key_of(LARGE)
