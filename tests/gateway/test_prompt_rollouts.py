"""A rollout as clients and workers see it: the share, stickiness, and each transition at every worker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import pytest

from rollouts.allocation import AllocationType, variant_of
from tests.fakes import scripted as play
from tests.fakes.scripted import Script, ScriptedServer
from tests.gateway.conftest import LONG_TIMEOUTS, Scripted
from tests.gateway.managed import Prompt, last_sent, make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.test_database_away import take_away
from tests.gateway.wire import body, read_stream

NAMED = {"x-svc-prompt-config": "support"}
PAUSED = "prompt config 'support' was skipped: its rollout is paused"


@pytest.fixture
def project(scripted: Scripted) -> tuple[Gateway, Script, Prompt]:
    """A project whose config has version 1, `Old for {{name}}.`, active and version 2, `New for {{name}}.`."""
    made, script = scripted(play.answer())
    return made, script, make_prompt(made, "Old for {{name}}.", "New for {{name}}.")


def ask(gateway: Gateway, *, port: int | None = None, stream: bool = False, **headers: str) -> httpx2.Response:
    """Sends the one request that these tests repeat, whatever the operator does meanwhile."""
    named = {f"x-svc-{name.replace('_', '-')}": value for name, value in headers.items()}
    sent = body(prompt_config="support", prompt_variables={"name": "Ann"}, stream=stream)
    response = gateway.post(sent, headers=named, port=port)
    assert response.status_code == 200, response.text
    return response


def everywhere(gateway: Gateway, expected: str, *, user_id: str = "") -> None:
    """Waits until every worker answers with the given version, variant or warning."""
    service = gateway.service

    def seen(port: int) -> str:
        response = ask(gateway, port=port, user_id=user_id)
        version = response.headers.get("x-svc-prompt-version")
        if version is None:
            return str(response.headers["x-svc-warning"].partition(";")[0])
        return f"{version} {response.headers.get('x-svc-variant', '-')}"

    for port in service.ports:
        got = service.until(lambda at=port: seen(at), lambda answer: answer == expected)  # type: ignore[misc]
        assert got == expected, port


def test_rollout__whole_life__same_request_and_every_worker_follows(
    project: tuple[Gateway, Script, Prompt],
) -> None:
    gateway, script, prompt = project
    everywhere(gateway, "1 -")

    rollout = prompt.roll_out(prompt.version_ids[1], 100)
    everywhere(gateway, "2 target")
    assert last_sent(script)["messages"][0] == {"role": "system", "content": "New for Ann."}

    rollout.move("pause")
    everywhere(gateway, PAUSED)
    assert [message["role"] for message in last_sent(script)["messages"]] == ["user"]

    rollout.move("start")
    everywhere(gateway, "2 target")

    rollout.move("roll_back")
    everywhere(gateway, "1 -")
    assert last_sent(script)["messages"][0] == {"role": "system", "content": "Old for Ann."}

    second = prompt.roll_out(prompt.version_ids[1], 100)
    everywhere(gateway, "2 target")
    second.move("promote")
    everywhere(gateway, "2 -")


def test_rollout__promoted__raises_the_share_and_keeps_who_is_in(project: tuple[Gateway, Script, Prompt]) -> None:
    gateway, _, prompt = project
    rollout = prompt.roll_out(prompt.version_ids[1], 25, 60, allocation_type="user_sticky")
    users = [f"user-{number}" for number in range(60)]

    def in_target() -> set[str]:
        return {user for user in users if ask(gateway, user_id=user).headers["x-svc-variant"] == "target"}

    def expected(weight: int) -> set[str]:
        allocated = {
            user: variant_of(rollout.id, AllocationType.USER_STICKY, weight, user_id=user, session_id="", request_id="")
            for user in users
        }
        return {user for user, allocation in allocated.items() if allocation.variant == "target"}

    first = in_target()
    assert first == expected(25)
    assert in_target() == first
    rollout.move("promote")
    newcomer = sorted(expected(60) - first)[0]
    everywhere(gateway, "2 target", user_id=newcomer)
    second = in_target()
    assert second == expected(60)
    assert first < second


@pytest.mark.parametrize("stream", [False, True])
def test_rollout__record__says_what_the_comparison_needs(project: tuple[Gateway, Script, Prompt], stream: bool) -> None:
    gateway, script, prompt = project
    rollout = prompt.roll_out(prompt.version_ids[1], 50, allocation_type="session_sticky")

    for session in ("s-1", "s-2", "s-3", "s-4"):
        response = ask(gateway, session_id=session, stream=stream)

        if stream:
            assert read_stream(response.content).text
        record = gateway.record(response)
        kind = AllocationType.SESSION_STICKY
        honest = variant_of(rollout.id, kind, 50, user_id="", session_id=session, request_id=record.request_id)
        assert (record.rollout_id, record.rollout_stage) == (rollout.id, 1)
        assert (record.variant, record.alloc_unit, record.alloc_fallback) == (honest.variant, honest.unit, False)
        assert (record.prompt_config_id, record.prompt_version) == (prompt.config_id, 1 + (honest.variant == "target"))
        assert response.headers["x-svc-variant"] == record.variant
        assert last_sent(script)["messages"][0]["content"].startswith("New" if record.variant == "target" else "Old")


def test_rollout__random__each_request_draws_for_itself(project: tuple[Gateway, Script, Prompt]) -> None:
    gateway, _, prompt = project
    rollout = prompt.roll_out(prompt.version_ids[1], 50)

    drawn = set()
    for _ in range(40):
        response = ask(gateway, user_id="one", session_id="one")
        record = gateway.record(response)
        honest = variant_of(
            rollout.id, AllocationType.RANDOM, 50, user_id="", session_id="", request_id=record.request_id
        )
        assert (record.variant, record.alloc_unit) == (honest.variant, honest.unit)
        drawn.add(record.variant)
    # Forty equal draws happen by chance once in 500 thousand million runs.
    assert drawn == {"target", "baseline"}


def test_rollout__unit_missing__warns_and_is_marked(project: tuple[Gateway, Script, Prompt]) -> None:
    gateway, _, prompt = project
    prompt.roll_out(prompt.version_ids[1], 50, allocation_type="user_sticky")

    response = ask(gateway, session_id="s-1")

    assert "goes by user (x-svc-user-id)" in response.headers["x-svc-warning"]
    assert gateway.record(response).alloc_fallback
    sdk = gateway.post(body(prompt_config="support", prompt_variables={"name": "Ann"}, user="ann"))
    assert not gateway.record(sdk).alloc_fallback


@pytest.mark.parametrize(("forced", "version", "weight"), [("target", "2", 1), ("baseline", "1", 100)])
def test_force_variant__is_served_and_left_out_of_the_comparison(
    project: tuple[Gateway, Script, Prompt], forced: str, version: str, weight: int
) -> None:
    gateway, _, prompt = project
    rollout = prompt.roll_out(prompt.version_ids[1], weight)

    for _ in range(5):
        response = ask(gateway, force_variant=forced)
        assert (response.headers["x-svc-variant"], response.headers["x-svc-prompt-version"]) == (forced, version)
    record = gateway.record(response)
    assert (record.rollout_id, record.variant, record.alloc_unit) == (rollout.id, forced, 0)


def test_rollout__target_takes_other_variables__one_request_fits_all_times(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer())
    prompt = make_prompt(gateway, "Dear {{first}}.", "Dear {{last}}.")
    sent = body(prompt_config="support", prompt_variables={"first": "Ann", "last": "Lee"})

    def answered(expected: str, **headers: str) -> None:
        gateway.service.until(
            lambda: gateway.post(sent, headers=headers).headers.get("x-svc-variant", "-"),
            lambda got: got == (headers.get("x-svc-force-variant") or "-"),
        )
        assert gateway.post(sent, headers=headers).status_code == 200
        assert last_sent(script)["messages"][0]["content"] == expected

    answered("Dear Ann.")
    rollout = prompt.roll_out(prompt.version_ids[1], 50)
    answered("Dear Lee.", **{"x-svc-force-variant": "target"})
    answered("Dear Ann.", **{"x-svc-force-variant": "baseline"})
    rollout.move("roll_back")
    answered("Dear Ann.")
    prompt.activate(prompt.version_ids[1])
    gateway.service.until(lambda: gateway.post(sent).headers["x-svc-prompt-version"], lambda number: number == "2")
    answered("Dear Lee.")


@pytest.fixture
def own_service() -> Iterator[GatewayService]:
    """A service of the test's own, whose one worker re-reads its snapshots often."""
    with GatewayService(workers=1, settings={**LONG_TIMEOUTS, "SNAPSHOT_SECONDS": "0.2"}) as running:
        yield running


def test_prompt__database_and_redis_away__last_good_version_is_served(
    own_service: GatewayService, upstream: ScriptedServer
) -> None:
    # The worker serves a version that a rollout allocates.
    script = upstream.play("prompts-away", play.answer())
    gateway = own_service.new_project(base_urls={"openai": upstream.base_url("prompts-away")})
    prompt = make_prompt(gateway, "Old for {{name}}.", "New for {{name}}.")
    prompt.roll_out(prompt.version_ids[1], 100)
    everywhere(gateway, "2 target")

    # Neither the database nor Redis can be reached any more.
    own_service.redis.stop()
    take_away(own_service)
    log = own_service.until(
        own_service.log.read_text, lambda text: "database.away" in text and "subscription.lost" in text
    )
    assert "database.away" in log
    assert "subscription.lost" in log

    # The worker goes on with its last snapshot.
    for stream in (False, True):
        response = ask(gateway, stream=stream)
        assert response.headers["x-svc-prompt-version"] == "2"
        assert json.loads(script.received[-1].body)["messages"][0]["content"] == "New for Ann."
