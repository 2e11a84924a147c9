"""Cached answers, as clients of two workers see them."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
import redis

from gateway.cache.key import prefix
from gateway.cache.store import empty
from gateway.guardrails.verdicts import VERDICTS
from gateway.limits.keys import minute_of, requests_key, tokens_key
from tests.fakes import scripted as play
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, body, read_stream

ASK = {"cache-control": "max-age=60"}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


def client_of(gateway: Gateway) -> redis.Redis:
    return redis.Redis.from_url(gateway.service.environment["REDIS_URL"])


def wait_until_stored(gateway: Gateway, count: int = 1) -> None:
    with client_of(gateway) as client:
        found = gateway.service.until(
            lambda: len(list(client.scan_iter(match=prefix(gateway.project_id) + "*"))), lambda stored: stored >= count
        )
    assert found == count


def status_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.headers["x-svc-cache"]


def test_same_request__sent_again__is_answered_without_the_provider(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer("Grüße 👋 an alle"), play.answer("another"))
    first = gateway.post(body(), headers=ASK)
    wait_until_stored(gateway)

    second = gateway.post(body(), headers=ASK, port=gateway.service.ports[1])

    assert (status_of(first), status_of(second)) == ((200, "miss"), (200, "hit"))
    assert second.content == first.content
    assert int(second.headers["age"]) >= 0
    for name in ("x-svc-provider", "x-svc-model-used"):
        assert second.headers[name] == first.headers[name]
    assert len(script.received) == 1


def test_hit__costs_nothing_and_counts_no_tokens(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    first = gateway.post(body(model="openai/priced-1"), headers=ASK)
    wait_until_stored(gateway)

    record = gateway.record(gateway.post(body(model="openai/priced-1"), headers=ASK))

    assert gateway.record(first).cache_status == "miss"
    assert float(gateway.record(first).cost_usd) > 0
    assert (record.cache_status, record.outcome, record.provider) == ("hit", "success", "openai")
    assert (record.prompt_tokens, record.completion_tokens, record.cost_known, float(record.cost_usd)) == (
        0,
        0,
        True,
        0,
    )
    assert first.json()["usage"]["total_tokens"] == 18


def test_hit__under_limits__counts_as_a_request_and_gives_its_reservation_back(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    limits = {"rate_limit_rpm": 100, "rate_limit_tpm": 100_000, "monthly_budget_usd": "10"}
    gateway.service.set_routing(gateway.project_id, rate_limit_enabled=True, **limits)
    responses = [gateway.post(body(), headers=ASK)]
    wait_until_stored(gateway)
    responses += [gateway.post(body(), headers=ASK) for _ in range(4)]
    assert [status_of(response)[1] for response in responses] == ["miss", *["hit"] * 4]
    assert all("x-ratelimit-remaining-requests" in response.headers for response in responses)
    minutes = {minute_of(gateway.record(response).ts) for response in responses}

    def used() -> tuple[int, int]:
        with client_of(gateway) as client:
            counts = [
                [int(client.get(key(gateway.project_id, minute)) or 0) for minute in minutes]
                for key in (requests_key, tokens_key)
            ]
        return sum(counts[0]), sum(counts[1])

    # The usage counts only the answer that was not in the cache.
    assert gateway.service.until(used, lambda found: found == (5, 18)) == (5, 18)


@pytest.mark.parametrize("header", [None, "no-store", "no-cache", "max-age=0", "nonsense"])
def test_request__that_does_not_ask__is_not_cached(scripted: Scripted, header: str | None) -> None:
    gateway, script = scripted(play.answer())
    headers = {"cache-control": header} if header else {}
    assert [status_of(gateway.post(body(), headers=headers)) for _ in range(2)] == [(200, "skip")] * 2
    assert len(script.received) == 2


def test_project_with_a_ttl__caches_what_does_not_refuse(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    gateway.service.set_routing(gateway.project_id, cache_ttl_seconds=60)
    gateway.service.until(lambda: status_of(gateway.post(body(seed=1)))[1], lambda found: found != "skip")
    gateway.post(body())
    wait_until_stored(gateway, 2)

    responses = [gateway.post(body(), headers=headers) for headers in ({}, {"cache-control": "no-store"})]

    assert [status_of(response)[1] for response in responses] == ["hit", "skip"]
    refreshed = gateway.post(body(), headers={"cache-control": "no-cache"})
    assert status_of(refreshed)[1] == "miss"


def test_stream__is_replayed_event_by_event(scripted: Scripted) -> None:
    words = [f"wörd{n} " for n in range(300)]
    gateway, script = scripted(play.stream(*play.text_events(*words)))
    first = gateway.post(body(stream=True), headers=ASK)
    wait_until_stored(gateway)

    second = gateway.post(body(stream=True), headers=ASK, port=gateway.service.ports[1])

    assert status_of(second) == (200, "hit")
    assert second.headers["content-type"].startswith("text/event-stream")
    assert second.content == first.content
    assert read_stream(second.content).text == "".join(words)
    assert len(script.received) == 1


def test_stream_and_whole__are_kept_apart(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer("one two"))
    gateway.post(body(), headers=ASK)
    wait_until_stored(gateway)
    assert status_of(gateway.post(body(stream=True), headers=ASK)) == (200, "miss")
    assert len(script.received) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_sdk__gets_tool_calls_from_the_cache_as_from_the_provider(scripted: Scripted, stream: bool) -> None:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "Tür"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    whole = play.answer(choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"}])
    events = [play.chunk({"role": "assistant", "tool_calls": [call]}), play.chunk({}, "tool_calls"), play.USAGE_CHUNK]
    gateway, script = scripted(play.stream(*events, play.DONE) if stream else whole)
    client = gateway.openai(default_headers=ASK)

    def calls() -> list[tuple[str, str]]:
        messages: Any = body()["messages"]
        if not stream:
            answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)  # type: ignore[arg-type]
            found: Any = answer.choices[0].message.tool_calls
        else:
            with client.chat.completions.stream(model="gpt-4o", messages=messages, tools=TOOLS) as given:  # type: ignore[arg-type]
                found = given.get_final_completion().choices[0].message.tool_calls
        return [(one.function.name, one.function.arguments) for one in found]

    expected = [("look", '{"at": "Tür"}')]
    assert calls() == expected
    wait_until_stored(gateway)
    assert calls() == expected
    assert len(script.received) == 1


@pytest.mark.parametrize(
    ("step", "fields"),
    [
        (play.status(500), {}),
        (play.status(400), {}),
        (play.answer(choices=[{"index": 0, "message": {"content": ""}, "finish_reason": "content_filter"}]), {}),
        (play.stream(play.ROLE, play.chunk({"content": "half"}), end="reset"), {"stream": True}),
        (
            play.answer("no JSON"),
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
        ),
    ],
)
def test_answer__not_worth_keeping__is_not_kept(scripted: Scripted, step: Any, fields: dict[str, Any]) -> None:
    gateway, script = scripted(step)
    requests = len([gateway.post(body(**fields), headers=ASK) for _ in range(2)])
    with client_of(gateway) as client:
        assert list(client.scan_iter(match=prefix(gateway.project_id) + "*")) == []
    assert len(script.received) >= requests


def test_answer__that_nobody_could_judge__is_not_kept(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    guardrails = {"trust_mode": "enforce", "min_quality_score": 50}
    # The project has no judge model.
    gateway.service.set_routing(gateway.project_id, guardrails=guardrails)
    gateway.service.until(
        lambda: gateway.record(gateway.post(body(seed=1))).attributes, lambda found: VERDICTS in found
    )
    assert [status_of(gateway.post(body(), headers=ASK)) for _ in range(3)] == [(200, "miss")] * 3


def test_answer_of_a_fallback__is_not_stored_for_the_requested_model(routed: Routed) -> None:
    gateway, _ = routed(openai=[play.status(500)], groq=[play.answer()])
    request = body(model="openai/gpt-4o", models=["groq/llama-3.3-70b-versatile"])
    assert [status_of(gateway.post(request, headers=ASK)) for _ in range(2)] == [(200, "miss")] * 2


def test_another_projects_identical_request__never_hits(scripted: Scripted) -> None:
    one, _ = scripted(play.answer("one's own"))
    other, _ = scripted(play.answer("the other's own"))
    one.post(body(), headers=ASK)
    wait_until_stored(one)
    found = other.post(body(), headers=ASK)
    assert status_of(found) == (200, "miss")
    assert found.json()["choices"][0]["message"]["content"] == "the other's own"


def test_managed_prompt__of_another_version__is_another_request(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer())
    seeder = gateway.service.seeder
    versions = [{"system_prompt": "Be kind."}, {"system_prompt": "Be brief."}]
    made = seeder.call("make_prompt", project_id=gateway.project_id, name="p", versions=versions)
    request = body(prompt_config="p")
    gateway.service.until(lambda: gateway.post(request).status_code, lambda code: code == 200)
    gateway.post(request, headers=ASK)
    wait_until_stored(gateway)
    assert status_of(gateway.post(request, headers=ASK)) == (200, "hit")

    ids = {"config_id": made["config_id"], "version_id": made["version_ids"][1]}
    seeder.call("activate_prompt", project_id=gateway.project_id, **ids)

    found = gateway.service.until(
        lambda: gateway.post(request, headers=ASK), lambda answer: status_of(answer)[1] == "miss"
    )
    assert found.headers["x-svc-prompt-version"] == "2"
    assert b"Be brief." in script.received[-1].body


def test_cache_control__in_two_lines__is_read_as_one(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    gateway.post(body(), headers=ASK)
    wait_until_stored(gateway)
    lines = [("cache-control", "no-store"), ("cache-control", "max-age=60")]
    url = gateway.service.base_url() + ENDPOINT
    response = gateway.client.post(url, json=body(), headers=[*gateway.headers.items(), *lines])
    assert status_of(response) == (200, "skip")


def test_stored_answer__older_than_max_age__is_not_returned(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer())
    gateway.post(body(), headers=ASK)
    wait_until_stored(gateway)
    assert status_of(gateway.post(body(), headers=ASK)) == (200, "hit")
    found = gateway.service.until(
        lambda: gateway.post(body(), headers={"cache-control": "max-age=1"}),
        lambda answer: status_of(answer)[1] == "miss",
    )
    assert status_of(found) == (200, "miss")
    assert len(script.received) == 2


def test_answer__too_large__is_not_kept(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("x" * (1024 * 1024)))
    assert [status_of(gateway.post(body(), headers=ASK)) for _ in range(2)] == [(200, "miss")] * 2


def test_value_in_redis__of_another_version__is_a_miss(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    gateway.post(body(), headers=ASK)
    wait_until_stored(gateway)
    with client_of(gateway) as client:
        for key in client.scan_iter(match=prefix(gateway.project_id) + "*"):
            client.set(key, json.dumps({"old": True}), keepttl=True)
    assert status_of(gateway.post(body(), headers=ASK)) == (200, "miss")


def test_cache__emptied__holds_nothing_of_the_project_and_all_of_others(scripted: Scripted) -> None:
    one, _ = scripted(play.answer())
    other, _ = scripted(play.answer())
    for gateway in (one, other):
        gateway.post(body(), headers=ASK)
        gateway.post(body(seed=2), headers=ASK)
        wait_until_stored(gateway, 2)
    with client_of(one) as client:
        assert empty(client, one.project_id) == 2
    assert status_of(one.post(body(), headers=ASK)) == (200, "miss")
    assert status_of(other.post(body(), headers=ASK)) == (200, "hit")


def test_redis_paused__requests_are_answered_and_one_line_says_so(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    gateway.post(body(), headers=ASK)
    wait_until_stored(gateway)
    before = gateway.service.log.read_text().count("gateway.cache redis.away")
    gateway.service.redis.send(signal.SIGSTOP)
    try:
        answers = [status_of(gateway.post(body(), headers=ASK, port=gateway.port)) for _ in range(5)]
    finally:
        gateway.service.redis.send(signal.SIGCONT)
    assert answers == [(200, "skip")] * 5
    assert gateway.service.log.read_text().count("gateway.cache redis.away") == before + 1
    back = gateway.service.until(
        lambda: gateway.post(body(), headers=ASK), lambda answer: status_of(answer)[1] == "hit"
    )
    assert status_of(back) == (200, "hit")
