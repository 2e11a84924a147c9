"""Requests of a running rollout that have not ended: what the evaluation sees of them, and what the shipper records of
those whose worker died."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx2
import pytest

from analytics.request_log.record import Outcome
from analytics.spool import names
from analytics.spool.inflight import InflightRequest, read_table
from analytics.spool.interrupted import record_interrupted
from rollouts.allocation import AllocationType, variant_of
from rollouts.open_requests.lists import OpenRequest, OpenRequestReader
from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer, Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import LONG_TIMEOUTS, Scripted
from tests.gateway.managed import Prompt, Rollout, make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import body, read_stream
from tests.waiting import TIMEOUT_SECONDS


def answer_by_user(released: threading.Event) -> Step:
    """Returns a step that answers according to the request's `user`, until it is released: `silent` without a byte,
    `begun` after one word of a stream."""
    begun = play.stream(play.ROLE, play.chunk({"content": "Once"}), released, play.FINISH, play.DONE)

    async def step(request: Received, connection: Connection) -> None:
        behaviour = json.loads(request.body).get("user")
        if behaviour == "begun":
            await begun(request, connection)
            return
        if behaviour == "silent":
            await asyncio.to_thread(released.wait, 2 * TIMEOUT_SECONDS)
        await play.answer()(request, connection)

    return step


def roll_out(gateway: Gateway, weight: int) -> tuple[Prompt, Rollout]:
    """Starts a rollout of `support` to its second version, and waits for every worker to see it."""
    prompt = make_prompt(gateway, "Old.", "New.")
    rollout = prompt.roll_out(prompt.version_ids[1], weight)
    for port in gateway.service.ports:
        got = gateway.service.until(
            lambda at=port: ask(gateway, "", port=at).headers.get("x-svc-variant"),  # type: ignore[misc]
            lambda variant: variant is not None,
        )
        assert got is not None
    return prompt, rollout


def ask(gateway: Gateway, behaviour: str, *, port: int, stream: bool = False, **fields: str) -> httpx2.Response:
    headers = {f"x-svc-{name.replace('_', '-')}": value for name, value in fields.items()}
    sent = body(prompt_config="support", user=behaviour, stream=stream)
    return gateway.post(sent, headers=headers, port=port)


def in_flight(service: GatewayService) -> list[InflightRequest]:
    """Returns the requests in the workers' tables."""
    tables = names.list_files(service.var / "spool", names.INFLIGHT)
    return [request for table in tables for request in read_table(table.read_bytes())]


@pytest.fixture
def released() -> Iterator[threading.Event]:
    found = threading.Event()
    yield found
    found.set()


def test_open_requests__silent_ones_of_every_worker__are_seen_until_they_end(
    scripted: Scripted, released: threading.Event
) -> None:
    # Requests of a rollout, and others of no arm, all wait for their provider.
    gateway, _ = scripted(answer_by_user(released))
    service, reader = gateway.service, OpenRequestReader(gateway.service.environment["REDIS_URL"])
    _, rollout = roll_out(gateway, 50)

    def open_now() -> list[OpenRequest]:
        return reader.read(rollout.id)

    with ThreadPoolExecutor(10) as clients:
        first, second = service.ports
        begun = clients.submit(ask, gateway, "begun", port=first, stream=True)
        forced = clients.submit(ask, gateway, "silent", port=second, force_variant="target")
        plain = clients.submit(gateway.post, body(user="silent"), port=first)
        service.until(lambda: len(of(gateway, in_flight(service))), lambda count: count == 3)
        silent = [
            clients.submit(ask, gateway, "silent", port=port, stream=stream)
            for port in (first, second)
            for stream in (True, False)
        ]

        # The requests have been open for long.
        seen = service.until(open_now, lambda found: len(found) == len(silent))
        # A worker that listed later requests would have listed the earlier ones.
        listed_in_flight = {request.request_id for request in of(gateway, in_flight(service))}
        released.set()
        answers = [one.result() for one in silent]
        others = [one.result() for one in (begun, forced, plain)]

    # The evaluation saw those of an arm without output, with the values that their rows have.
    records = [gateway.record(answer) for answer in answers]
    assert seen == sorted(
        (
            OpenRequest(one.request_id, rollout.id, one.rollout_stage, one.variant, one.alloc_unit, one.ts)
            for one in records
        ),
        key=lambda request: request.arrived_us,
    )
    for one in seen:
        honest = variant_of(rollout.id, AllocationType.RANDOM, 50, user_id="", session_id="", request_id=one.request_id)
        assert (one.stage, one.variant, one.alloc_unit) == (1, honest.variant, honest.unit)
    assert {answer.headers["x-request-id"] for answer in others} <= listed_in_flight
    assert read_stream(others[0].content).text == "Once"
    # The evaluation finds no open request once all requests have ended.
    assert service.until(open_now, lambda found: not found) == []


def test_open_request__of_a_question_that_the_other_arm_has_cached__is_noted_and_not_listed(
    scripted: Scripted, released: threading.Event
) -> None:
    # The baseline has an answer to the question when the rollout begins, and the provider is silent afterwards.
    gateway, script = scripted(play.answer(), answer_by_user(released))
    service, reader = gateway.service, OpenRequestReader(gateway.service.environment["REDIS_URL"])
    prompt = make_prompt(gateway, "Old.", "New.")
    sent, stored = body(prompt_config="support", user="silent"), {"cache-control": "max-age=600"}
    service.until(lambda: gateway.post(sent, headers=stored).headers["x-svc-cache"], lambda cache: cache == "hit")
    rollout = prompt.roll_out(prompt.version_ids[1], 100)
    (port, _) = service.ports
    service.until(lambda: ask(gateway, "", port=port).headers.get("x-svc-variant"), lambda variant: variant == "target")
    with ThreadPoolExecutor(2) as clients:

        def begin(cache: str) -> InflightRequest:
            """Begins a request that the target gets, and returns it as the table has it."""
            received, known = len(script.received), {one.request_id for one in of(gateway, in_flight(service))}
            clients.submit(gateway.post, sent, headers={"cache-control": cache}, port=port)
            # The provider has the request once the cache has been asked.
            service.until(lambda: len(script.received), lambda number: number > received)
            (found,) = [one for one in of(gateway, in_flight(service)) if one.request_id not in known]
            return found

        cached, other = begin("max-age=600"), begin("no-store")
        listed = service.until(lambda: reader.read(rollout.id), bool)
        released.set()

    assert cached.allocation is not None
    assert other.allocation is not None
    assert (cached.allocation.question_cached, other.allocation.question_cached) == (True, False)
    assert [one.request_id for one in listed] == [other.request_id]


def of(gateway: Gateway, requests: list[InflightRequest]) -> list[InflightRequest]:
    return [request for request in requests if request.project_id == gateway.project_id]


def _was_sent(request: InflightRequest) -> bool:
    return request.tokens > 0


@pytest.fixture
def own_service() -> Iterator[GatewayService]:
    with GatewayService(workers=1, settings=LONG_TIMEOUTS) as running:
        yield running


def test_worker_killed__with_requests_of_a_rollout__they_are_recorded_with_what_they_were_given(
    own_service: GatewayService, upstream: ScriptedServer, released: threading.Event
) -> None:
    # The provider is silent for a request of a rollout and for one without a rollout.
    upstream.play("killed-in-flight", answer_by_user(released))
    gateway = own_service.new_project(base_urls={"openai": upstream.base_url("killed-in-flight")})
    prompt, rollout = roll_out(gateway, 100)
    (port,) = own_service.ports
    with ThreadPoolExecutor(2) as clients:
        lost = [
            clients.submit(ask, gateway, "silent", port=port),
            clients.submit(gateway.post, body(user="silent"), port=port),
        ]
        waiting = own_service.until(partial(in_flight, own_service), lambda found: sum(map(_was_sent, found)) == 2)

        # The worker is killed.
        own_service.kill_worker(0)
        assert all(isinstance(one.exception(), httpx2.TransportError) for one in lost)

    # The shipper records both, the one of the rollout with the fields that the comparison needs.
    assert record_interrupted(own_service.var / "spool") == 2
    records = {one.request_id: gateway.record(one.request_id) for one in waiting}
    assert {record.outcome for record in records.values()} == {Outcome.INTERRUPTED}
    # Both may be billed.
    assert all(record.tokens_estimated and record.prompt_tokens for record in records.values())
    (given,) = [record for record in records.values() if record.rollout_id]
    honest = variant_of(rollout.id, AllocationType.RANDOM, 100, user_id="", session_id="", request_id=given.request_id)
    assert (given.rollout_id, given.rollout_stage, given.variant) == (rollout.id, 1, "target")
    assert (given.alloc_unit, given.alloc_fallback) == (honest.unit, False)
    assert (given.prompt_config_id, given.prompt_version, given.prompt_name) == (prompt.config_id, 2, "support")
