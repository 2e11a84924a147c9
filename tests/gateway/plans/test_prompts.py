"""Requests with managed prompts, to a worker with plans and to one without: client, provider and request log see the
same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.runtime.traced_requests import traced_requests
from rollouts.allocation import AllocationType, variant_of
from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer, answer, raw
from tests.gateway import service
from tests.gateway.managed import Prompt, Rollout
from tests.gateway.plans.both import PlansService, Seen, same
from tests.gateway.plans.test_random import ANSWERS, BODIES, CONFORMING, HEADERS, PLAIN_BODIES
from tests.gateway.prompted import SCHEMA, TOOL
from tests.gateway.service import Gateway
from tests.gateway.wire import body, encoded
from tests.night import examples
from tests.tables.cases import tabled

SCRIPT = "prompts"
PRICED_MODEL = f"openai/{service.PRICED_MODEL}"
NAMED = {"x-svc-prompt-config": "support"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
MARKS = (
    'null "cache_control" cache_control function "assistant" "untrusted" "n" "developer" \\u0041 ü {{ "stream": true'
)


CONTENT = encoded()

PROMPTS: dict[str, list[dict[str, Any]]] = {
    "support": [{"system_prompt": "Be kind."}, {"system_prompt": "Be brief."}],
    "numbers": [{"system_prompt": "Be kind.", "temperature": 0.25, "max_tokens": 77}],
    "preferred": [{"system_prompt": "Be kind.", "model": "openai/gpt-4o-mini"}],
    "tools": [{"system_prompt": "Be kind.", "tools": [TOOL]}],
    "schema": [{"system_prompt": "Be kind.", "response_format": SCHEMA}],
    "marks": [{"system_prompt": f"{MARKS}\n\t\x07"}],
    "blank": [{"system_prompt": "{{ a }}", "variables": [{"name": "a"}]}],
    "optional": [{"system_prompt": "Be {{ a }}.", "variables": [{"name": "a"}]}],
    "required": [{"system_prompt": "Be {{ a }}.", "variables": [{"name": "a", "required": True}]}],
    "undeclared": [{"system_prompt": "Be {{ a }}."}],
    "messages": [
        {
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "2 + 2"},
                {"role": "assistant", "content": "4"},
            ]
        }
    ],
    "developer": [{"messages": [{"role": "developer", "content": "Be kind."}]}],
    "ünder": [{"system_prompt": "Be kind."}],
    "included": [{"messages": [{"role": "system", "content": "Hello."}, {"prompt": "support@1"}]}],
}


def versions_of(prompts: dict[str, list[dict[str, Any]]], gateway: Gateway) -> dict[str, Prompt]:
    """Makes the prompts and waits until both workers know the last of them."""
    made = {}
    for name, versions in prompts.items():
        found = gateway.service.seeder.call("make_prompt", project_id=gateway.project_id, name=name, versions=versions)
        made[name] = Prompt(gateway, name, found["config_id"], found["version_ids"])
    everywhere(gateway, "1", {"x-svc-prompt-config": name})
    return made


def everywhere(gateway: Gateway, expected: str, headers: dict[str, str]) -> None:
    """Waits until both workers answer with the version, the variant behind it, or the beginning of a warning."""

    def seen(port: int) -> str:
        headers_of = gateway.post(CONTENT, headers=headers, port=port).headers
        version, variant = headers_of.get("x-svc-prompt-version"), headers_of.get("x-svc-variant")
        return " ".join(filter(None, (version, variant))) or headers_of.get("x-svc-warning", "").partition(";")[0]

    for port in gateway.service.ports:
        got = gateway.service.until(lambda at=port: seen(at), lambda found: found == expected)  # type: ignore[misc]
        assert got == expected


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.play(SCRIPT, answer())
        yield server


NewProject = Callable[..., Gateway]


@pytest.fixture(scope="module")
def new_project(plans: PlansService, upstream: ScriptedServer) -> NewProject:
    def made(**routing: Any) -> Gateway:
        places = dict.fromkeys(("openai", "groq", "anthropic"), upstream.base_url(SCRIPT))
        gateway = plans.new_project(base_urls=places, routing={"retry_enabled": False, **routing})
        gateway.upstream = upstream
        return gateway

    return made


@pytest.fixture(scope="module")
def gateway(new_project: NewProject) -> Gateway:
    made = new_project()
    prompts = versions_of(PROMPTS, made)
    prompts["support"].label("live", 2)
    made.service.until(
        lambda: [
            made.post(CONTENT, headers={"x-svc-prompt-config": "support@live"}, port=port).status_code
            for port in made.service.ports
        ],
        lambda statuses: statuses == [200, 200],
    )
    return made


@pytest.fixture(autouse=True)
def _plain_answers(upstream: ScriptedServer, gateway: Gateway) -> Iterator[None]:
    upstream.play(SCRIPT, answer())
    yield
    # A test may have ended the connection.
    upstream.play(SCRIPT, answer())
    same(gateway, upstream, CONTENT)


def named(name: str, /, **fields: Any) -> dict[str, Any]:
    return {"content": encoded(**fields), "headers": {"x-svc-prompt-config": name}}


SYSTEM = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
DEVELOPER = [{"role": "developer", "content": "a"}, {"role": "user", "content": "b"}]
PLAIN: dict[str, dict[str, Any]] = {
    "by_the_header": named("support"),
    "by_the_body": {"content": encoded(prompt_config="support")},
    "by_both": named("numbers", prompt_config="support"),
    "by_none": {"content": CONTENT},
    "by_none_on_purpose": named(""),
    "own_system_message": named("support", messages=SYSTEM),
    "own_developer_message": named("support", messages=DEVELOPER),
    "own_system_message_and_no_name": {"content": encoded(messages=SYSTEM)},
    "priced": named("support", model=PRICED_MODEL),
    "own_name": named("support", model="gpt-4o"),
    "another_dialect": named("support", model="groq/llama-3.3-70b-versatile"),
    "reasoning_model": named("numbers", model="openai/o3"),
    "session_and_user": {
        "content": encoded(),
        "headers": {**NAMED, "x-svc-session-id": "s", "x-svc-user-id": "ü", "x-request-id": "mine"},
    },
    "user_of_the_body": named("support", user="somebody", seed=7),
    "trace": {"content": CONTENT, "headers": {**NAMED, "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}},
    "spaces": {
        "content": b' { "model" : "openai/gpt-4o" , "messages":[ {"role":"user","content":"a"} ] } ',
        "headers": NAMED,
    },
    "name_with_escapes": {
        "content": b'{"mod\\u0065l":"gpt-4o","messages":[{"role":"user","content":"a\\u0041"}]}',
        "headers": NAMED,
    },
    "messages_twice": {
        "content": b'{"model":"gpt-4o","messages":[],"messages":[{"role":"user","content":"a"}]}',
        "headers": NAMED,
    },
    "null_field": named("numbers", temperature=None),
    "own_numbers": named("numbers", temperature=1, max_completion_tokens=5),
    "tools": named("support", tools=[TOOL]),
    "unknown_field": named("support", anything={"a": [1, 2]}),
    "text_with_marks": named("support", messages=[{"role": "user", "content": MARKS}]),
    "tools_of_its_own": named("tools", tools=[TOOL]),
    "older_tools_of_its_own": named("tools", functions=[{"name": "f"}]),
    **{f"prompt_{name}": named(name) for name in PROMPTS if name not in ("schema", "required", "ünder")},
    "prompt_beyond_ascii": {"content": encoded(prompt_config="ünder")},
}
OTHERS: dict[str, dict[str, Any]] = {
    "unknown": named("nothing"),
    "unknown_in_the_body": {"content": encoded(prompt_config="nothing")},
    "declined_in_the_body": {"content": encoded(prompt_config="")},
    "own_system_message_and_name_in_the_body": {"content": encoded(prompt_config="support", messages=SYSTEM)},
    "pinned_to_a_label": named("support@live"),
    "pinned_to_a_number": named("support@2"),
    "pinned_to_the_latest": named("support@latest"),
    "pinned_to_nothing": named("support@9"),
    "variables": {"content": encoded(prompt_config="optional", prompt_variables={"a": "kind"})},
    "no_variables": {"content": encoded(prompt_config="optional", prompt_variables={})},
    "unknown_variable": {"content": encoded(prompt_config="optional", prompt_variables={"b": "kind"})},
    "variable_of_a_header": {"content": CONTENT, "headers": {"x-svc-prompt-config": "optional", "x-svc-var-a": "kind"}},
    "missing_variable": named("required"),
    "forced_variant": {"content": CONTENT, "headers": {**NAMED, "x-svc-force-variant": "target"}},
    "prompt_with_a_schema": named("schema"),
    "auto": named("preferred", model="auto"),
    "stream": named("support", stream=True),
    "refused_parameter": named("support", model="groq/llama-3.3-70b-versatile", n=2),
    "invalid": named("support", temperature=9),
    "cache_control": {"content": CONTENT, "headers": {**NAMED, "cache-control": "no-store"}},
}


@pytest.mark.parametrize("request_", PLAIN.values(), ids=PLAIN)
def test_prompted_request__with_and_without_plans__is_the_same(gateway: Gateway, request_: dict[str, Any]) -> None:
    seen, planned = same(gateway, gateway.upstream, **request_)

    assert seen.status == 200, seen.answer
    assert planned


@pytest.mark.parametrize("request_", OTHERS.values(), ids=OTHERS)
def test_other_prompted_request__with_and_without_plans__is_the_same(
    gateway: Gateway, request_: dict[str, Any]
) -> None:
    assert not same(gateway, gateway.upstream, **request_)[1]


def test_prompt__of_a_planned_request__is_what_its_provider_gets(gateway: Gateway) -> None:
    seen, _ = same(gateway, gateway.upstream, **named("messages"))

    sent = json.loads(seen.received[0][3])
    assert [message["content"] for message in sent["messages"]] == ["Be kind.", "2 + 2", "4", "hi"]
    assert (seen.record["prompt_name"], seen.record["prompt_version"]) == ("messages", 1)
    # The request log has the client's own request.
    assert json.loads(seen.logged[0]) == body()


@pytest.mark.parametrize(
    "step",
    [
        raw(200, json.dumps(play.completion("")).encode()),
        raw(200, json.dumps(play.completion("", usage={"prompt_tokens": 1, "completion_tokens": 1})).encode()),
        raw(200, b"{}"),
        play.status(500),
        play.status(429),
        play.reset,
    ],
    ids=["empty", "empty_and_counted", "nothing", "500", "429", "reset"],
)
def test_answer__to_a_prompt__is_the_same(gateway: Gateway, step: play.Step) -> None:
    gateway.upstream.play(SCRIPT, step)

    same(gateway, gateway.upstream, **named("support", model=PRICED_MODEL))


@tabled
def test_project__with_prompts_and_settings_of_its_own__is_the_same(
    new_project: NewProject, routing: dict[str, Any], *, planned: bool
) -> None:
    gateway = new_project(**routing)
    versions_of({"support": PROMPTS["support"]}, gateway)

    def both() -> tuple[Seen, bool]:
        # The cache answers the second worker from what the first has stored, unless a client takes nothing of it.
        fresh = {"cache-control": "no-cache"} if "cache_ttl_seconds" in routing else {}
        return same(gateway, gateway.upstream, CONTENT, headers={**NAMED, **fresh})

    seen, found = gateway.service.until(both, lambda found: found[1] or not planned)

    assert (seen.status, found) == (200, planned)


USERS = [f"user-{number}" for number in range(12)]


def asked(gateway: Gateway, *, unrecorded: frozenset[str] = frozenset(), **headers: str) -> tuple[Seen, bool]:
    named_by = {f"x-svc-{name.replace('_', '-')}": value for name, value in headers.items()}
    return same(gateway, gateway.upstream, CONTENT, headers={**NAMED, **named_by}, unrecorded=unrecorded)


def variant_at_half(rollout: Rollout, user: str) -> str:
    kind = AllocationType.USER_STICKY
    return variant_of(rollout.id, kind, 50, user_id=user, session_id="", request_id="").variant.value


def test_rollout__in_each_of_its_states__is_the_same(new_project: NewProject) -> None:
    gateway = new_project()
    prompt = versions_of({"support": PROMPTS["support"]}, gateway)["support"]
    draft = {
        "config_id": prompt.config_id,
        "target_version_id": prompt.version_ids[1],
        "name": "first",
        "allocation_type": "user_sticky",
        "mode": "manual",
        "stages": [{"weight": 50}, {"weight": 100}],
    }
    made = gateway.manage("POST", "prompts/rollouts", draft)
    assert made.status_code == 201, made.text
    rollout = Rollout(gateway, made.json()["id"])
    of_baseline = next(user for user in USERS if variant_at_half(rollout, user) == "baseline")
    of_one = {**NAMED, "x-svc-user-id": of_baseline}

    def allocated() -> set[tuple[int, str]]:
        found = [asked(gateway, user_id=user) for user in USERS]
        assert all(planned for _, planned in found)
        assert {seen.record["prompt_name"] for seen, _ in found} == {"support"}
        return {(seen.record.get("prompt_version", 0), seen.record.get("variant", "")) for seen, _ in found}

    assert allocated() == {(1, "")}
    rollout.move("start")
    everywhere(gateway, "1 baseline", of_one)
    assert allocated() == {(1, "baseline"), (2, "target")}
    rollout.move("pause")
    everywhere(gateway, "prompt config 'support' was skipped: its rollout is paused", of_one)
    assert allocated() == {(0, "")}
    rollout.move("start")
    everywhere(gateway, "1 baseline", of_one)
    rollout.move("promote")
    everywhere(gateway, "2 target", of_one)
    assert allocated() == {(2, "target")}
    rollout.move("roll_back")
    everywhere(gateway, "1", of_one)
    assert allocated() == {(1, "")}
    second = prompt.roll_out(prompt.version_ids[1], 100)
    everywhere(gateway, "2 target", of_one)
    second.move("complete")
    everywhere(gateway, "2", of_one)
    assert allocated() == {(2, "")}


@pytest.mark.parametrize("allocation_type", ["user_sticky", "session_sticky"])
def test_rollout__whose_unit_is_missing__is_the_same(new_project: NewProject, allocation_type: str) -> None:
    gateway = new_project()
    prompt = versions_of({"support": PROMPTS["support"]}, gateway)["support"]
    prompt.roll_out(prompt.version_ids[1], 100, allocation_type=allocation_type)
    everywhere(gateway, "2 target", {**NAMED, "x-svc-user-id": "u", "x-svc-session-id": "s"})

    for headers in ({"user_id": "u"}, {"session_id": "s"}, {"user_id": "u", "session_id": "s"}, {}):
        # A request that names neither is allocated by its own id.
        assert asked(gateway, unrecorded=frozenset({"alloc_unit"}), **headers)[1]


def test_rollout__by_request__draws_for_each(new_project: NewProject, plans: PlansService) -> None:
    gateway = new_project()
    prompt = versions_of({"support": PROMPTS["support"]}, gateway)["support"]
    rollout = prompt.roll_out(prompt.version_ids[1], 50)
    gateway.service.until(
        lambda: gateway.post(CONTENT, headers=NAMED, port=gateway.port).headers.get("x-svc-variant"), bool
    )
    before, drawn = plans.planned[0], set()
    for _ in range(40):
        response = gateway.post(CONTENT, headers=NAMED, port=gateway.port)
        record = gateway.record(response)
        honest = variant_of(
            rollout.id, AllocationType.RANDOM, 50, user_id="", session_id="", request_id=record.request_id
        )
        assert (record.variant, record.alloc_unit) == (honest.variant, honest.unit)
        assert response.headers["x-svc-variant"] == record.variant
        drawn.add(record.variant)

    # Forty equal draws happen by chance once in 500 thousand million runs.
    assert drawn == {"target", "baseline"}
    assert plans.planned[0] - before > 30


def test_rollout__by_request_at_100__is_the_same(new_project: NewProject) -> None:
    gateway = new_project()
    prompt = versions_of({"support": PROMPTS["support"]}, gateway)["support"]
    prompt.roll_out(prompt.version_ids[1], 100)
    everywhere(gateway, "2 target", NAMED)

    for text in ("Where is my parcel? It should have been here on Monday.", "Wo ist mein Paket geblieben?", "1", MARKS):
        content = encoded(messages=[{"role": "user", "content": text}])
        seen, planned = same(gateway, gateway.upstream, content, headers=NAMED, unrecorded=frozenset({"alloc_unit"}))
        assert planned
        assert seen.record["client_tokens"]


def test_planned_request__of_a_rollout_and_a_trace__is_announced_once(
    new_project: NewProject, plans: PlansService
) -> None:
    gateway = new_project()
    prompt = versions_of({"support": PROMPTS["support"]}, gateway)["support"]
    prompt.roll_out(prompt.version_ids[1], 100)
    everywhere(gateway, "2 target", NAMED)
    before = plans.planned[0]

    response = gateway.post(
        CONTENT, headers={**NAMED, "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}, port=gateway.port
    )

    assert plans.planned[0] == before + 1
    with closing(redis.Redis.from_url(plans.environment["REDIS_URL"])) as store:
        times = plans.until(lambda: traced_requests(store, gateway.project_id, [TRACE])[TRACE], bool)
    assert times == [gateway.record(response).ts]


def test_request_of_a_rollout__that_a_plan_hands_over__is_the_same_and_frees_its_slots(
    new_project: NewProject, plans: PlansService
) -> None:
    gateway = new_project()
    prompt = versions_of({"support": PROMPTS["support"]}, gateway)["support"]
    prompt.roll_out(prompt.version_ids[1], 100, allocation_type="user_sticky")
    everywhere(gateway, "2 target", {**NAMED, "x-svc-user-id": USERS[0]})
    for user in USERS[:4]:
        gateway.upstream.play(SCRIPT, answer())
        gateway.service.until(lambda by=user: asked(gateway, user_id=by)[1], bool)  # type: ignore[misc]
        gateway.upstream.play(SCRIPT, play.status(500))
        before = plans.counts(gateway.port)[2]

        seen, planned = asked(gateway, user_id=user)

        assert (seen.status, planned, plans.counts(gateway.port)[2]) == (503, False, before + 1)
        assert seen.record["variant"] == "target"
    for port in gateway.service.ports:
        assert gateway.client.get(f"{gateway.service.base_url(port)}/healthz").json()["in_flight"] == 0


def test_versions__that_change__are_those_of_the_next_request(new_project: NewProject) -> None:
    gateway = new_project()
    prompt = versions_of({"support": PROMPTS["support"]}, gateway)["support"]

    for number in (2, 1, 2):
        prompt.activate(prompt.version_ids[number - 1])
        everywhere(gateway, str(number), NAMED)
        seen, planned = asked(gateway)
        assert (seen.record["prompt_version"], planned) == (number, True)
    prompt.activate(prompt.add("Be exact.", temperature=0.5))
    everywhere(gateway, "3", NAMED)
    seen, planned = asked(gateway)
    sent = json.loads(seen.received[0][3])
    assert (sent["messages"][0]["content"], sent["temperature"], planned) == ("Be exact.", 0.5, True)
    prompt.delete()
    gateway.service.until(
        lambda: [gateway.post(CONTENT, headers=NAMED, port=port).status_code for port in gateway.service.ports],
        lambda statuses: statuses == [404, 404],
    )
    seen, planned = asked(gateway)
    assert (seen.status, planned) == (404, False)


MORE: dict[str, list[dict[str, Any]]] = {
    "rolled_out": [{"system_prompt": "Be kind."}, {"messages": PROMPTS["developer"][0]["messages"], "max_tokens": 3}],
    "by_session": [{"system_prompt": "Be exact.", "temperature": 0.5}, {"system_prompt": "Be brief."}],
    "paused": [{"system_prompt": "Be kind."}, {"system_prompt": "Be brief."}],
}
NAMES = st.sampled_from([*PROMPTS, *MORE, "", "nothing", "support@1"])


@pytest.fixture(scope="module")
def rolled_out(new_project: NewProject) -> Gateway:
    """A project with every prompt of `PROMPTS` and three in rollouts, one of which is paused."""
    gateway = new_project()
    prompts = versions_of({**PROMPTS, **MORE}, gateway)
    unit = {"x-svc-user-id": "u", "x-svc-session-id": "s"}
    for name, allocation_type in (("rolled_out", "user_sticky"), ("by_session", "session_sticky")):
        prompts[name].roll_out(prompts[name].version_ids[1], 50, allocation_type=allocation_type)
    paused = prompts["paused"].roll_out(prompts["paused"].version_ids[1], 50, allocation_type="user_sticky")
    paused.move("pause")
    everywhere(
        gateway, "prompt config 'paused' was skipped: its rollout is paused", {**unit, "x-svc-prompt-config": "paused"}
    )
    return gateway


@given(
    request=PLAIN_BODIES | BODIES,
    headers=HEADERS,
    unit=st.sampled_from(USERS),
    by_header=st.none() | NAMES,
    by_body=st.none() | NAMES,
    answered=CONFORMING | ANSWERS,
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_random_exchange_with_a_prompt__with_and_without_plans__is_the_same(
    rolled_out: Gateway,
    request: dict[str, Any],
    headers: dict[str, str],
    unit: str,
    by_header: str | None,
    by_body: str | None,
    answered: dict[str, Any],
) -> None:
    content = msgspec.json.encode({**request, **({} if by_body is None else {"prompt_config": by_body})})
    named_by = {} if by_header is None else {"x-svc-prompt-config": by_header.encode().decode("latin-1")}
    # A request without the unit of a rollout is allocated by its own id.
    units = {"x-svc-user-id": unit, "x-svc-session-id": unit}
    rolled_out.upstream.play(SCRIPT, raw(200, msgspec.json.encode(answered), {"content-type": "application/json"}))

    same(rolled_out, rolled_out.upstream, content, headers={**headers, **named_by, **units})


def test_random_exchanges_with_prompts__that_conform__are_answered_by_plans(rolled_out: Gateway) -> None:
    by_stages = []

    @given(request=PLAIN_BODIES, name=st.sampled_from(["support", "developer", *MORE]), answered=CONFORMING)
    @settings(deadline=None, max_examples=examples(5, 20), suppress_health_check=[HealthCheck.too_slow])
    def ask(request: dict[str, Any], name: str, answered: dict[str, Any]) -> None:
        rolled_out.upstream.play(SCRIPT, raw(200, msgspec.json.encode(answered), {"content-type": "application/json"}))
        headers = {"x-svc-prompt-config": name, "x-svc-user-id": "u", "x-svc-session-id": "s"}
        if not same(rolled_out, rolled_out.upstream, msgspec.json.encode(request), headers=headers)[1]:
            by_stages.append((name, request))

    ask()

    assert not by_stages
