"""The stage of managed prompts by itself: the changed request, byte for byte where that matters."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.errors import PromptConfigNotFoundError
from prompts.errors import BrokenIncludeError, InvalidVariableError, MissingVariableError, UnknownVariableError
from tests.gateway.prompted import JSON, SCHEMA, TOOL, a_prompt, a_version, injected, sent
from tests.tables.cases import tabled


def test_prompt__named__becomes_the_first_message_and_nothing_else_changes() -> None:
    context, state = injected({"seed": 7, "vendor": {"a": [1]}}, a_prompt(a_version()))

    assert sent(context) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        "seed": 7,
        "vendor": {"a": [1]},
    }
    assert (state.prompt.config_id, state.prompt.version) == ("c-1", 3)
    assert state.warnings == ()


def test_prompt__messages__stay_byte_for_byte() -> None:
    messages = b'[ {"content":"\\u00e9\\/ 1.0", "role":"user" , "x": 1.00} ]'
    body = b' { "model":"m", "prompt_config" : "support", "messages" : ' + messages + b', "vendor":1.0e0 } '

    context, _ = injected(body, a_prompt(a_version("A")))

    assert b'{"role":"system","content":"A"}, {"content":"\\u00e9\\/ 1.0", "role":"user" , "x": 1.00} ]' in context.body
    assert b'"vendor":1.0e0' in context.body


def test_prompt__with_messages__all_stand_before_the_clients() -> None:
    texts = [("developer", "In {{language}}."), ("user", "Good day"), ("assistant", "{{ hint }}"), ("user", "Now:")]
    version = a_version(messages=texts, variables=[{"name": "hint"}])
    own = b' {"role":"user", "content":"\\u00e9"} ]'
    body = b'{"model":"m","prompt_config":"support","prompt_variables":{"language":"German"},"messages":[' + own + b"}"

    context, state = injected(body, a_prompt(version))

    # A text that renders to nothing is no message.
    assert sent(context)["messages"][:3] == [
        {"role": "developer", "content": "In German."},
        {"role": "user", "content": "Good day"},
        {"role": "user", "content": "Now:"},
    ]
    assert context.body.endswith(b"," + own + b"}")
    assert state.injected_bytes == len(context.body) - len(body)


def test_prompt__with_messages_and_a_request_with_instructions__is_skipped() -> None:
    version = a_version(messages=[("user", "Good day"), ("assistant", "Guten Tag")])

    context, state = injected({"messages": [{"role": "system", "content": "Mine."}]}, a_prompt(version))

    assert b"Guten Tag" not in context.body
    assert (state.prompt.version, len(state.warnings)) == (0, 1)


def test_prompt__include_that_went__is_refused() -> None:
    version = replace(a_version(), problem="messages.0.prompt: it went.")

    with pytest.raises(BrokenIncludeError) as raised:
        injected({}, a_prompt(version))

    assert (raised.value.status, raised.value.code) == (409, "prompt_include_broken")


def test_prompt__header_and_body_name_different_configs__the_bodys_is_used() -> None:
    other = a_prompt(a_version("Other."), name="other")

    context, state = injected({}, a_prompt(a_version("Mine.")), other, headers={"x-svc-prompt-config": "other"})

    assert sent(context)["messages"][0]["content"] == "Mine."
    assert state.prompt.name == "support"


def test_prompt__unknown_name__is_not_found_and_not_quoted_whole() -> None:
    with pytest.raises(PromptConfigNotFoundError) as raised:
        injected({"prompt_config": "x" * 5000}, a_prompt(a_version()))

    assert len(raised.value.message) < 200


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("position", [0, 1])
def test_prompt__request_has_a_system_message__is_skipped_with_all_it_has(role: str, position: int) -> None:
    messages = [{"role": "user", "content": "hi"}]
    messages.insert(position, {"role": role, "content": ""})
    version = a_version("{{needed}}", [{"name": "needed", "required": True}], temperature=0.1)

    context, state = injected({"messages": messages}, a_prompt(version))

    assert json.loads(context.body) == {"model": "m", "messages": messages, "prompt_config": "support"}
    assert (state.prompt.config_id, state.prompt.version) == ("c-1", 0)
    assert state.warnings == ("prompt config 'support' was skipped: the request has a system message",)


def test_prompt__config_without_a_version__is_skipped() -> None:
    context, state = injected({}, a_prompt(None))

    assert b"system" not in context.body
    assert state.warnings == ("prompt config 'support' was skipped: it has no version yet",)


@pytest.mark.parametrize(
    ("name", "role", "prompts", "warned"),
    [(None, "user", 1, True), ("", "user", 1, False), (None, "system", 1, False), (None, "user", 0, False)],
)
def test_prompt__none_named__warns_where_there_is_one_to_name(
    name: str | None, role: str, prompts: int, warned: bool
) -> None:
    fields = {"prompt_config": name, "messages": [{"role": role, "content": "hi"}]}

    context, state = injected(fields, *[a_prompt(a_version())][:prompts])

    assert json.loads(context.body)["messages"] == fields["messages"]
    assert state.warnings == (
        ("explicit mode with no prompt_config sent: no managed prompt was used",) if warned else ()
    )
    assert state.prompt.config_id == ""


def test_variables__of_header_and_body__merge_and_the_bodys_win() -> None:
    version = a_version("{{user_name}} {{tone}} {{n}}", [{"name": "n", "type": "number"}])

    context, _ = injected(
        {"prompt_variables": {"tone": "warm", "n": 5}},
        a_prompt(version),
        headers={"x-svc-var-user-name": "Ann", "x-svc-var-tone": "cold", "x-svc-var-n": "4"},
    )

    assert sent(context)["messages"][0]["content"] == "Ann warm 5"


def test_variables__missing_wrong_or_unknown__name_the_variable() -> None:
    prompt = a_prompt(a_version("{{n}}", [{"name": "n", "type": "number", "required": True}]))

    with pytest.raises(MissingVariableError, match="'n'"):
        injected({}, prompt)
    with pytest.raises(InvalidVariableError, match="'n'"):
        injected({"prompt_variables": {"n": "many"}}, prompt)
    with pytest.raises(UnknownVariableError, match="'m'"):
        injected({"prompt_variables": {"n": 1, "m": 2}}, prompt)


@pytest.mark.parametrize("value", [b"1e999", b'"\\ud800"', b"[" * 5000 + b"]" * 5000])
def test_variables__json_that_cannot_be_read__is_refused(value: bytes) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"a"}],"prompt_config":"support","prompt_variables":{"n":'

    with pytest.raises(ValidationError):
        injected(body + value + b"}}", a_prompt(a_version("{{n}}", [{"name": "n", "type": "string"}])))


@given(value=JSON)
def test_variables__of_any_kind__come_out_as_their_text(value: Any) -> None:
    context, _ = injected({"prompt_variables": {"v": value}}, a_prompt(a_version("<{{v}}>")))

    text = sent(context)["messages"][0]["content"]
    expected = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    assert text == ("<{{v}}>" if value is None else f"<{expected}>")


def test_defaults__left_out_by_the_request__are_the_versions() -> None:
    version = a_version(temperature=0.25, max_tokens=9, tools=[TOOL], response_format=SCHEMA, model="gpt-4o")

    context, state = injected({"temperature": None, "tools": None}, a_prompt(version))

    body = sent(context)
    assert body["temperature"] == 0.25
    assert body["max_tokens"] == 9
    assert (body["tools"], body["response_format"]) == ([TOOL], SCHEMA)
    assert context.request.response_format is not None
    assert context.request.response_format.type == "json_schema"
    assert body["model"] == "m"
    assert state.request is not None
    assert state.request.tools is None


@tabled
def test_defaults__set_by_the_request__stay_the_requests(own: dict[str, Any]) -> None:
    version = a_version(temperature=0.25, max_tokens=9, tools=[TOOL], response_format=SCHEMA)

    context, _ = injected(own, a_prompt(version))

    body = sent(context)
    assert own.items() <= body.items()
    assert "max_tokens" not in body or "max_completion_tokens" not in body
    assert "tools" not in body or "functions" not in body


@pytest.mark.parametrize(("requested", "used"), [("auto", "gpt-4o"), ("gpt-4o-mini", "gpt-4o-mini")])
def test_default_model__only_for_auto(requested: str, used: str) -> None:
    context, state = injected({"model": requested}, a_prompt(a_version(model="gpt-4o")))

    assert sent(context)["model"] == used
    assert state.request is not None
    assert state.request.model == requested


def test_prompt__without_text__adds_its_parameters_and_no_message() -> None:
    context, state = injected({}, a_prompt(a_version("", temperature=0.5)))

    assert sent(context)["messages"] == [{"role": "user", "content": "hi"}]
    assert sent(context)["temperature"] == 0.5
    assert state.prompt.version == 3


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "x", "b", 1, 1.0, True, None]), max_size=2))
)
def test_variables__request_after_request__each_gets_its_own_text(requests: list[dict[str, Any]]) -> None:
    lasting = a_prompt(a_version("{{a}}|{{b}}"))

    for variables in requests:
        again, _ = injected({"prompt_variables": variables}, lasting)
        fresh, _ = injected({"prompt_variables": variables}, a_prompt(a_version("{{a}}|{{b}}")))
        assert again.body == fresh.body
