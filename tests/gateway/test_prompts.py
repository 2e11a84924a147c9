"""Managed prompts through the running gateway: the request that the provider gets, the warnings, the record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam

from tests.fakes import scripted as play
from tests.fakes.scripted import Script, ScriptedServer
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.managed import Prompt, last_sent, make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import assert_error, body, read_stream
from tests.night import examples
from tests.tables.cases import tabled

ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
NAMED = {"x-svc-prompt-config": "support"}


@pytest.fixture(scope="module")
def shared(service: GatewayService, upstream: ScriptedServer) -> tuple[Gateway, Script, Prompt]:
    """A project of provider openai with the config `support`, whose prompt takes `name` (required) and `extra`."""
    script = upstream.play("prompts", play.answer())
    project = service.new_project(base_urls={"openai": upstream.base_url("prompts")})
    project.upstream = upstream
    variables = [{"name": "name", "type": "string", "required": True}, {"name": "extra", "type": "object"}]
    return project, script, make_prompt(project, "You help {{ name }}.{{extra}}", variables=variables)


def system_message(script: Script) -> str:
    first = last_sent(script)["messages"][0]
    assert first["role"] == "system"
    content: str = first["content"]
    return content


def test_prompt__by_header__is_what_the_provider_gets(shared: tuple[Gateway, Script, Prompt]) -> None:
    project, script, prompt = shared

    response = project.post(body(seed=5), headers={**NAMED, "x-svc-var-name": "Ann"})

    assert response.status_code == 200, response.text
    assert last_sent(script) == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "You help Ann."}, {"role": "user", "content": "hi"}],
        "seed": 5,
    }
    assert response.headers["x-svc-prompt-version"] == "1"
    assert "x-svc-variant" not in response.headers
    assert "prompt" not in response.headers.get("x-svc-warning", "")
    record = project.record(response)
    assert (record.prompt_config_id, record.prompt_version) == (prompt.config_id, 1)
    assert (record.rollout_id, record.variant, record.alloc_unit) == ("", "", 0)


def test_prompt__stored_request__is_what_the_client_sent(shared: tuple[Gateway, Script, Prompt]) -> None:
    project, _, _ = shared
    sent = json.dumps(body(prompt_config="support", prompt_variables={"name": "Ann"})).encode()

    response = project.post(sent)

    (entry,) = project.service.entries(response.headers["x-request-id"])
    assert entry.request == sent


@pytest.mark.parametrize("stream", [False, True])
def test_prompt__by_the_official_sdk__in_the_body(shared: tuple[Gateway, Script, Prompt], stream: bool) -> None:
    project, script, _ = shared
    extra = {"prompt_config": "support", "prompt_variables": {"name": "Ann"}}

    with project.openai() as client:
        raw = client.chat.completions.with_raw_response.create(
            model="openai/gpt-4o", messages=ASK, stream=stream, extra_body=extra
        )
        assert raw.headers["x-svc-prompt-version"] == "1"
        parsed: Any = raw.parse()
        text = "".join(c.choices[0].delta.content or "" for c in parsed if c.choices) if stream else ""

    assert system_message(script) == "You help Ann."
    assert not {"prompt_config", "prompt_variables"} & last_sent(script).keys()
    assert text == ("Hello from upstream" if stream else "")


def test_prompt__by_the_official_sdk__as_default_headers(shared: tuple[Gateway, Script, Prompt]) -> None:
    project, script, _ = shared

    with project.openai(default_headers={**NAMED, "x-svc-var-name": "Ann"}) as client:
        client.chat.completions.create(model="openai/gpt-4o", messages=ASK)

    assert system_message(script) == "You help Ann."


def test_prompt__stream__is_served_as_any_other(shared: tuple[Gateway, Script, Prompt]) -> None:
    project, script, prompt = shared

    response = project.post(body(stream=True), headers={**NAMED, "x-svc-var-name": "Ann"})

    assert read_stream(response.content).text == "Hello from upstream"
    assert response.headers["x-svc-prompt-version"] == "1"
    assert system_message(script) == "You help Ann."
    assert project.record(response).prompt_config_id == prompt.config_id


def test_prompt__unknown_config__is_404(shared: tuple[Gateway, Script, Prompt]) -> None:
    project, script, _ = shared
    before = len(script.received)

    for response in (project.post(body(prompt_config="nobody")), project.post(body(), headers={**NAMED, **_NOBODY})):
        assert_error(response, 404, "prompt_config_not_found", type="not_found_error", naming="nobody")
        assert project.record(response).error_code == "prompt_config_not_found"
    assert len(script.received) == before


_NOBODY = {"x-svc-prompt-config": "nobody"}


def test_prompt__config_of_another_project__is_404(
    shared: tuple[Gateway, Script, Prompt], gateway: Gateway, scripted: Scripted
) -> None:
    other, _ = scripted(play.answer())
    make_prompt(other, "Theirs.", name="theirs")

    assert_error(shared[0].post(body(prompt_config="theirs")), 404, "prompt_config_not_found")
    assert_error(gateway.post(body(prompt_config="support")), 404, "prompt_config_not_found")


@pytest.mark.parametrize(
    ("variables", "code", "name"),
    [
        ({}, "missing_variable", "name"),
        ({"name": 5}, "invalid_variable", "name"),
        ({"name": "Ann", "extra": "{"}, "invalid_variable", "extra"),
        ({"name": "Ann", "nmae": "Ann"}, "unknown_variable", "nmae"),
        ({"name": "x" * 1_100_000}, "invalid_variable", "name"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_variables__wrong__are_422_naming_the_variable(
    shared: tuple[Gateway, Script, Prompt], variables: dict[str, Any], code: str, name: str, stream: bool
) -> None:
    project, script, prompt = shared
    before = len(script.received)

    response = project.post(body(prompt_config="support", prompt_variables=variables, stream=stream))

    message = assert_error(response, 422, code, type="invalid_request_error", naming=repr(name))
    assert "xxx" not in message
    assert len(script.received) == before
    record = project.record(response)
    assert (record.error_code, record.prompt_config_id, record.prompt_version) == (code, prompt.config_id, 1)


def test_variables__header_too_long__is_400(shared: tuple[Gateway, Script, Prompt]) -> None:
    response = shared[0].post(body(), headers={**NAMED, "x-svc-var-name": "x" * 256})

    assert_error(response, 400, "invalid_value", naming="x-svc-var-name")


@tabled
def test_variables__that_look_like_code__come_out_as_plain_text(
    shared: tuple[Gateway, Script, Prompt], value: str
) -> None:
    project, script, _ = shared

    response = project.post(body(prompt_config="support", prompt_variables={"name": value}))

    assert response.status_code == 200, response.text
    assert system_message(script) == f"You help {value}."
    assert len(last_sent(script)["messages"]) == 2


@settings(max_examples=examples(15, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.text(max_size=200))
def test_variables__any_text__comes_out_as_it_went_in(shared: tuple[Gateway, Script, Prompt], value: str) -> None:
    project, script, _ = shared

    response = project.post(body(prompt_config="support", prompt_variables={"name": value}))

    assert response.status_code == 200, response.text
    assert system_message(script) == f"You help {value}."


@pytest.mark.parametrize("role", ["system", "developer"])
def test_prompt__system_message_in_the_request__is_skipped_with_a_warning(
    shared: tuple[Gateway, Script, Prompt], role: str
) -> None:
    project, script, prompt = shared
    messages = [{"role": role, "content": "Mine."}, {"role": "user", "content": "hi"}]

    response = project.post(body(messages=messages, prompt_config="support"))

    assert response.status_code == 200, response.text
    assert [message["content"] for message in last_sent(script)["messages"]] == ["Mine.", "hi"]
    assert "prompt config 'support' was skipped: the request has a system message" in response.headers["x-svc-warning"]
    assert "x-svc-prompt-version" not in response.headers
    record = project.record(response)
    assert (record.prompt_config_id, record.prompt_version) == (prompt.config_id, 0)


@pytest.mark.parametrize("stream", [False, True])
def test_prompt__none_named__warns_beside_other_warnings(
    shared: tuple[Gateway, Script, Prompt], gateway: Gateway, stream: bool
) -> None:
    project, script, _ = shared

    response = project.post(body(model="openai/unpriced", stream=stream))

    assert [message["role"] for message in last_sent(script)["messages"]] == ["user"]
    warning = response.headers["x-svc-warning"]
    assert warning.startswith("explicit mode with no prompt_config sent")
    assert "no price is known" in warning
    # A project without configs gets no warning, nor does a request with a system message.
    own = {"role": "system", "content": "Mine."}
    for silent in (
        gateway.post(body(stream=stream)),
        project.post(body(messages=[own, *body()["messages"]])),
        # A request that declines prompts by an empty name gets no warning either.
        project.post(body(stream=stream), headers={"x-svc-prompt-config": ""}),
        project.post(body(stream=stream, prompt_config="")),
    ):
        assert "prompt" not in silent.headers.get("x-svc-warning", "")


def test_prompt__failed_attempts__all_get_it_and_the_warning_stays(routed: Routed) -> None:
    project, scripts = routed({"fallback_order": ["groq"]}, openai=[play.status(503)], groq=[play.answer("from groq")])
    make_prompt(project, "Be kind.", name="support")

    response = project.post(body(), headers=NAMED)

    assert response.headers["x-svc-fallback-used"] == "true"
    for script in scripts.values():
        for received in script.received:
            assert json.loads(received.body)["messages"][0] == {"role": "system", "content": "Be kind."}
    unnamed = project.post(body())
    assert "explicit mode with no prompt_config sent" in unnamed.headers["x-svc-warning"]


TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "properties": {}}}}


def test_defaults__of_the_version__apply_where_the_request_says_nothing(scripted: Scripted) -> None:
    project, script = scripted(play.answer())
    content: dict[str, Any] = {"temperature": 0.25, "max_tokens": 77, "tools": [TOOL], "response_format": SCHEMA}
    make_prompt(project, "Be kind.", model="openai/gpt-4o", **content)

    assert project.post(body(model="auto"), headers=NAMED).headers["x-svc-model-used"] == "gpt-4o"
    sent = last_sent(script)
    assert {name: sent[name] for name in content} == content

    own = {"temperature": 0.5, "max_completion_tokens": 5, "tools": [], "response_format": {"type": "text"}}
    assert project.post(body(model="openai/gpt-4o-mini", **own), headers=NAMED).status_code == 200
    sent = last_sent(script)
    assert sent["model"] == "gpt-4o-mini"
    assert sent["temperature"] == 0.5
    assert "max_tokens" not in sent
    assert not sent.get("tools")

    system = {"role": "system", "content": "Mine."}
    assert project.post(body(messages=[system, *body()["messages"]]), headers=NAMED).status_code == 200
    assert not content.keys() & last_sent(script).keys()


def test_auto__chooses_by_what_the_prompt_needs(routed: Routed) -> None:
    # The first model's context is 131,072 tokens long.
    preferred = ["groq/llama-3.3-70b-versatile", "openai/gpt-4.1"]
    project, _ = routed({"preferred_models": preferred}, openai=[play.answer()], groq=[play.answer()])
    make_prompt(project, "Be kind.", max_tokens=200_000)

    named = project.post(body(model="auto"), headers=NAMED)
    bare = project.post(body(model="auto"))

    assert (named.headers["x-svc-provider"], bare.headers["x-svc-provider"]) == ("openai", "groq")


def test_prompt__activated_undone_deleted__is_seen_by_every_worker(service: GatewayService, scripted: Scripted) -> None:
    project, script = scripted(play.answer())
    for port in service.ports:
        assert project.post(body(), port=port).status_code == 200
    prompt = make_prompt(project, "One.")

    def served(port: int) -> str:
        response = project.post(body(), headers=NAMED, port=port)
        if response.status_code != 200:
            return str(response.status_code)
        # The header is missing while a worker has read the config and not yet its version.
        return f"{response.headers.get('x-svc-prompt-version')} {system_message(script)}"

    def all_serve(expected: str) -> None:
        for port in service.ports:
            assert service.until(lambda at=port: served(at), lambda got: got == expected) == expected  # type: ignore[misc]

    all_serve("1 One.")
    second = prompt.add("Two.")
    assert served(service.ports[0]) == "1 One."
    prompt.activate(second)
    all_serve("2 Two.")
    prompt.activate(prompt.version_ids[0])
    all_serve("1 One.")
    prompt.delete()
    all_serve("404")


def test_prompt__included_one_moves_on__is_seen_by_every_worker(service: GatewayService, scripted: Scripted) -> None:
    project, script = scripted(play.answer())
    style = make_prompt(project, "Be calm.", "Be quick.", name="style")
    make_prompt(project, "", messages=[{"prompt": "style"}, {"role": "user", "content": "Now:"}])

    def texts(port: int) -> list[str]:
        response = project.post(body(), headers=NAMED, port=port)
        return [message["content"] for message in last_sent(script)["messages"][:2]] if response.is_success else []

    for port in service.ports:
        expected = ["Be calm.", "Now:"]
        assert service.until(lambda at=port: texts(at), lambda got: got == ["Be calm.", "Now:"]) == expected  # type: ignore[misc]
    style.activate(style.version_ids[1])
    for port in service.ports:
        expected = ["Be quick.", "Now:"]
        assert service.until(lambda at=port: texts(at), lambda got: got == ["Be quick.", "Now:"]) == expected  # type: ignore[misc]
    record = project.record(project.post(body(), headers=NAMED))
    assert record.attributes["prompt_included"] == "style@2"


@tabled
def test_prompt__headers_that_the_log_does_not_keep__are_noted(
    scripted: Scripted, headers: dict[str, str], marks: dict[str, str]
) -> None:
    project, _ = scripted(play.answer())
    make_prompt(project, "Greet {{name}}." if "x-svc-var-name" in headers else "Be calm.")

    response = project.post(body(), headers={**NAMED, **headers})

    assert response.status_code == 200
    assert project.record(response).attributes == marks


def test_prompt__name_outside_ascii__is_found_by_header_and_body(scripted: Scripted) -> None:
    project, script = scripted(play.answer())
    make_prompt(project, "Grüße.", name="größe 🌊")

    for response in (
        project.post(body(prompt_config="größe 🌊")),
        project.post(body(), headers={"x-svc-prompt-config": "größe 🌊".encode()}),
    ):
        assert response.status_code == 200, response.text
        assert system_message(script) == "Grüße."
