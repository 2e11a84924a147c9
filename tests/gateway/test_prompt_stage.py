"""The stage of managed prompts by itself: what becomes of a request, byte for byte where that matters."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ValidationError
from core.keys import KeyRecord
from gateway.errors import PromptConfigNotFoundError
from gateway.pipeline.context import Account, RequestContext
from gateway.pipeline.prompt import with_prompt
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.headers import read_headers
from gateway.protocol.wire import LazyFields, decode_request
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt, RunningRollout
from prompts.errors import InvalidVariableError, MissingVariableError, UnknownVariableError
from prompts.selectors import PromptVersionRecord
from prompts.templating import compile_template
from rollouts.allocation import AllocationType, UnitKind, unit_number, variant_at

PROJECT = uuid4()
ROLLOUT = "01890000-0000-7000-8000-000000000001"
KEY = KeyRecord(id=1, project_id=PROJECT, key_hash="", scopes=frozenset({"gateway"}), expires_at=None)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def a_version(text: str = "Be kind.", variables: Any = (), **content: Any) -> PromptVersionRecord:
    fields: dict[str, Any] = {"model": "", "temperature": None, "max_tokens": None, "tools": None}
    fields |= {"response_format": None, **content}
    for name in ("tools", "response_format"):
        if fields[name] is not None:
            fields[name] = json.dumps(fields[name]).encode()
    return PromptVersionRecord(uuid4(), 3, compile_template(text, variables), **fields)


def a_prompt(version: PromptVersionRecord | None, name: str = "support", **fields: Any) -> ManagedPrompt:
    return ManagedPrompt("c-1", name, version, **fields)


def injected(
    fields: dict[str, Any] | bytes,
    *prompts: ManagedPrompt,
    headers: dict[str, str] | None = None,
) -> tuple[RequestContext, Account]:
    """What the stage makes of a request, and its account. A request that is a dict names the config `support`."""
    given_fields = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "prompt_config": "support"}
    body = json.dumps({**given_fields, **fields}).encode() if isinstance(fields, dict) else fields
    snapshot = ProjectSnapshot(
        PROJECT, str(PROJECT), {}, {}, {}, ProjectSettings(), 1, {prompt.name: prompt for prompt in prompts}
    )
    read = read_headers([(name.encode(), value.encode()) for name, value in (headers or {}).items()])
    request = decode_request(body)
    account = Account("r-1", 0, time.perf_counter(), snapshot, KEY, read, body, request)
    context = RequestContext(snapshot, read, body, request, LazyFields(body))
    return with_prompt(context, account), account


def sent(context: RequestContext) -> dict[str, Any]:
    """What goes on to the adapters; body, fields and request have to agree."""
    body: dict[str, Any] = json.loads(context.body)
    assert dict(context.fields) == body
    assert len(context.request.messages) == len(body["messages"])
    assert context.request.messages[0].content == body["messages"][0]["content"]
    assert (context.request.model, context.request.temperature) == (body["model"], body.get("temperature"))
    assert (context.request.max_tokens, bool(context.request.tools)) == (
        body.get("max_tokens"),
        bool(body.get("tools")),
    )
    return body


def test_prompt__named__becomes_the_first_message_and_nothing_else_changes() -> None:
    context, account = injected({"seed": 7, "vendor": {"a": [1]}}, a_prompt(a_version()))

    assert sent(context) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        "seed": 7,
        "vendor": {"a": [1]},
    }
    assert (account.prompt.config_id, account.prompt.version) == ("c-1", 3)
    assert account.prompt_warnings == ()


def test_prompt__messages__stay_byte_for_byte() -> None:
    messages = b'[ {"content":"\\u00e9\\/ 1.0", "role":"user" , "x": 1.00} ]'
    body = b' { "model":"m", "prompt_config" : "support", "messages" : ' + messages + b', "vendor":1.0e0 } '

    context, _ = injected(body, a_prompt(a_version("A")))

    assert b'{"role":"system","content":"A"}, {"content":"\\u00e9\\/ 1.0", "role":"user" , "x": 1.00} ]' in context.body
    assert b'"vendor":1.0e0' in context.body


def test_prompt__header_and_body_name_different_configs__the_bodys_is_used() -> None:
    other = a_prompt(a_version("Other."), name="other")

    context, account = injected({}, a_prompt(a_version("Mine.")), other, headers={"x-svc-prompt-config": "other"})

    assert sent(context)["messages"][0]["content"] == "Mine."
    assert account.prompt.name == "support"


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

    context, account = injected({"messages": messages}, a_prompt(version))

    assert json.loads(context.body) == {"model": "m", "messages": messages, "prompt_config": "support"}
    assert (account.prompt.config_id, account.prompt.version) == ("c-1", 0)
    assert account.prompt_warnings == ("prompt config 'support' was skipped: the request has a system message",)


def test_prompt__config_without_a_version__is_skipped() -> None:
    context, account = injected({}, a_prompt(None))

    assert b"system" not in context.body
    assert account.prompt_warnings == ("prompt config 'support' was skipped: it has no version yet",)


@pytest.mark.parametrize(
    ("name", "role", "prompts", "warned"),
    [(None, "user", 1, True), ("", "user", 1, False), (None, "system", 1, False), (None, "user", 0, False)],
)
def test_prompt__none_named__warns_where_there_is_one_to_name(
    name: str | None, role: str, prompts: int, warned: bool
) -> None:
    fields = {"prompt_config": name, "messages": [{"role": role, "content": "hi"}]}

    context, account = injected(fields, *[a_prompt(a_version())][:prompts])

    assert json.loads(context.body)["messages"] == fields["messages"]
    assert account.prompt_warnings == (
        ("explicit mode with no prompt_config sent: no managed prompt was used",) if warned else ()
    )
    assert account.prompt.config_id == ""


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

    context, account = injected({"temperature": None, "tools": None}, a_prompt(version))

    body = sent(context)
    assert body["temperature"] == 0.25
    assert body["max_tokens"] == 9
    assert (body["tools"], body["response_format"]) == ([TOOL], SCHEMA)
    assert context.request.response_format is not None
    assert context.request.response_format.type == "json_schema"
    assert body["model"] == "m"
    assert account.request is not None
    assert account.request.tools is None


@pytest.mark.parametrize(
    "own",
    [
        {"temperature": 0.0},
        {"max_tokens": 1},
        {"max_completion_tokens": 1},
        {"tools": []},
        {"functions": [{"name": "f"}]},
        {"response_format": {"type": "text"}},
    ],
)
def test_defaults__said_by_the_request__stay_the_requests(own: dict[str, Any]) -> None:
    version = a_version(temperature=0.25, max_tokens=9, tools=[TOOL], response_format=SCHEMA)

    context, _ = injected(own, a_prompt(version))

    body = sent(context)
    assert own.items() <= body.items()
    assert "max_tokens" not in body or "max_completion_tokens" not in body
    assert "tools" not in body or "functions" not in body


@pytest.mark.parametrize(("asked", "used"), [("auto", "gpt-4o"), ("gpt-4o-mini", "gpt-4o-mini")])
def test_default_model__only_for_auto(asked: str, used: str) -> None:
    context, account = injected({"model": asked}, a_prompt(a_version(model="gpt-4o")))

    assert sent(context)["model"] == used
    assert account.request is not None
    assert account.request.model == asked


def test_prompt__without_text__adds_its_parameters_and_no_message() -> None:
    context, account = injected({}, a_prompt(a_version("", temperature=0.5)))

    assert sent(context)["messages"] == [{"role": "user", "content": "hi"}]
    assert sent(context)["temperature"] == 0.5
    assert account.prompt.version == 3


def a_rollout(**fields: Any) -> RunningRollout:
    """From `Old.` (version 1) to `New.` (version 2)."""
    usual: dict[str, Any] = {"weight": 50, "allocation_type": AllocationType.USER_STICKY, "paused": False}
    versions = {"baseline": replace(a_version("Old."), number=1), "target": replace(a_version("New."), number=2)}
    return RunningRollout(**{"id": ROLLOUT, "stage": 5, **usual, **versions, **fields})


@pytest.mark.parametrize(("weight", "text", "variant"), [(0, "Old.", "baseline"), (100, "New.", "target")])
def test_rollout__running__serves_the_arms_version(weight: int, text: str, variant: str) -> None:
    prompt = a_prompt(a_version("Active."), rollout=a_rollout(weight=weight))

    context, account = injected({}, prompt, headers={"x-svc-user-id": "ann"})

    assert sent(context)["messages"][0]["content"] == text
    use = account.prompt
    assert (use.version, use.variant, use.rollout_id, use.stage) == (1 + (weight == 100), variant, ROLLOUT, 5)
    assert use.unit == unit_number(ROLLOUT, UnitKind.USER, "ann")
    assert not use.fallback
    assert account.prompt_warnings == ()


@pytest.mark.parametrize(
    ("allocation", "headers", "fields", "kind", "value", "fallback"),
    [
        (AllocationType.USER_STICKY, {"x-svc-user-id": "ann"}, {"user": "bob"}, UnitKind.USER, "ann", False),
        (AllocationType.USER_STICKY, {}, {"user": "bob"}, UnitKind.USER, "bob", False),
        (AllocationType.USER_STICKY, {"x-svc-session-id": "s"}, {}, UnitKind.SESSION, "s", True),
        (AllocationType.USER_STICKY, {}, {}, UnitKind.REQUEST, "r-1", True),
        (AllocationType.SESSION_STICKY, {"x-svc-session-id": "s"}, {"user": "bob"}, UnitKind.SESSION, "s", False),
        (AllocationType.SESSION_STICKY, {"x-svc-user-id": "ann"}, {}, UnitKind.REQUEST, "r-1", True),
        (AllocationType.RANDOM, {"x-svc-user-id": "ann", "x-svc-session-id": "s"}, {}, UnitKind.REQUEST, "r-1", False),
    ],
)
def test_rollout__unit__is_what_it_goes_by_else_the_next_one_with_a_warning(
    allocation: AllocationType,
    headers: dict[str, str],
    fields: dict[str, Any],
    kind: UnitKind,
    value: str,
    fallback: bool,
) -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout(allocation_type=allocation))

    _, account = injected(fields, prompt, headers=headers)

    assert account.prompt.unit == unit_number(ROLLOUT, kind, value)
    assert account.prompt.variant == variant_at(account.prompt.unit, 50).value
    assert account.prompt.fallback is fallback
    assert bool(account.prompt_warnings) is fallback
    assert all(f"allocated by {kind.value}" in warning for warning in account.prompt_warnings)


@pytest.mark.parametrize(("forced", "text"), [("target", "New."), ("baseline", "Old.")])
def test_force_variant__running_rollout__is_obeyed_and_counts_for_nothing(forced: str, text: str) -> None:
    weight = 0 if forced == "target" else 100
    prompt = a_prompt(a_version(), rollout=a_rollout(weight=weight))

    context, account = injected({}, prompt, headers={"x-svc-force-variant": forced, "x-svc-user-id": "ann"})

    assert sent(context)["messages"][0]["content"] == text
    assert (account.prompt.variant, account.prompt.unit, account.prompt.rollout_id) == (forced, 0, ROLLOUT)


def test_force_variant__no_rollout__the_active_version_with_a_warning() -> None:
    context, account = injected({}, a_prompt(a_version()), headers={"x-svc-force-variant": "target"})

    assert sent(context)["messages"][0]["content"] == "Be kind."
    assert account.prompt_warnings == ("x-svc-force-variant: no rollout of 'support' is running",)


@pytest.mark.parametrize("forced", ["", "target"])
def test_rollout__paused__falls_through_with_a_warning(forced: str) -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout(paused=True))

    context, account = injected({}, prompt, headers={"x-svc-force-variant": forced})

    assert b"system" not in context.body
    assert (account.prompt.version, account.prompt.rollout_id, account.prompt.variant) == (0, "", "")
    assert account.prompt_warnings == ("prompt config 'support' was skipped: its rollout is paused",)


def test_variables__of_another_version__are_no_mistake() -> None:
    prompt = a_prompt(a_version("{{a}}"), names=frozenset({"a", "b"}))

    context, _ = injected({"prompt_variables": {"a": "1", "b": "2"}}, prompt)

    assert sent(context)["messages"][0]["content"] == "1"
    with pytest.raises(UnknownVariableError, match="'c'"):
        injected({"prompt_variables": {"a": "1", "c": "3"}}, prompt)


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "x", "b", 1, 1.0, True, None]), max_size=2))
)
def test_variables__request_after_request__each_gets_its_own_text(requests: list[dict[str, Any]]) -> None:
    lasting = a_prompt(a_version("{{a}}|{{b}}"))

    for variables in requests:
        again, _ = injected({"prompt_variables": variables}, lasting)
        fresh, _ = injected({"prompt_variables": variables}, a_prompt(a_version("{{a}}|{{b}}")))
        assert again.body == fresh.body


def test_remembered__texts_and_units__are_few() -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout(target=a_version("{{n}}"), weight=100))

    for number in range(300):
        injected({"prompt_variables": {"n": str(number)}, "user": f"u{number}"}, prompt)
    injected({"prompt_variables": {"n": "x" * 20_000}, "user": "y" * 500}, prompt)

    assert prompt.rollout is not None
    assert len(prompt.rendered) <= 100
    assert len(prompt.rollout.drawn) == 300


def test_rollout__same_user_again__same_arm_and_no_mark_of_others() -> None:
    prompt = a_prompt(a_version(), rollout=a_rollout())

    arms: dict[str, str] = {}
    for user in ("a", "b", "c", "", "a", "b", "c", ""):
        _, account = injected({"user": user}, prompt)
        assert account.prompt.fallback is (user == "")
        assert arms.setdefault(user, account.prompt.variant) == account.prompt.variant
