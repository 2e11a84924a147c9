"""The fault matrix: what the client, the headers and the record show for every way in which a provider can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from analytics.request_log.record import Outcome, RequestRecord
from tests.fakes import scripted as play
from tests.fakes.scripted import ROLE, Script, Step
from tests.gateway.conftest import Routed
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.gateway.wire import assert_error, body, read_stream

SHORT_WAIT = {"retry-after": "0"}
LONG_WAIT = {"retry-after": "30"}
ERROR_EVENT = b'data: {"error": {"message": "scripted", "type": "server_error", "code": 503}}\n\n'
SLOW_PREAMBLE: list[bytes | float] = [ROLE, 0.2] * 200
CUT = play.stream(ROLE, play.chunk({"content": "Hel"}), end="hang_up")


@dataclass(frozen=True)
class Fault:
    """One way for a provider to fail. `tries` is the number of calls with `retry_max_attempts` 2, `status` and `code`
    are the client's when no other provider can serve, `error` is the kind in the attempt's record."""

    name: str
    step: Step
    tries: int
    status: int
    code: str
    error: str
    upstream_status: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def is_waited_for(self) -> bool:
        return self.error == "timeout"


def fault(name: str, step: Step, *expected: Any, **more: Any) -> Any:
    return pytest.param(Fault(name, step, *expected, **more), id=name)


UNAVAILABLE = (2, 503, "provider_unavailable", "unavailable")
TIMEOUT = (2, 503, "provider_timeout", "timeout")
BOTH_MODES = [
    fault("reset", play.reset, *UNAVAILABLE),
    fault("hang-up", play.hang_up, *UNAVAILABLE),
    fault("garbage", play.garbage, 1, 500, "provider_error", "unusable"),
    fault("stall-before-first-byte", play.hang, *TIMEOUT),
    fault("408", play.status(408), *UNAVAILABLE, 408),
    fault("500", play.status(500), *UNAVAILABLE, 500),
    fault("502", play.status(502), *UNAVAILABLE, 502),
    fault("503", play.status(503), *UNAVAILABLE, 503),
    fault("504", play.status(504), *UNAVAILABLE, 504),
    fault("529", play.status(529), *UNAVAILABLE, 529),
    fault("429", play.status(429), 2, 503, "provider_unavailable", "rate_limited", 429),
    fault(
        "429-short", play.status(429, headers=SHORT_WAIT), 2, 503, "provider_unavailable", "rate_limited", 429,
        headers={"retry-after": "0"},
    ),
    fault(
        "429-long", play.status(429, headers=LONG_WAIT), 1, 503, "provider_unavailable", "rate_limited", 429,
        headers={"retry-after": "30"},
    ),
    fault("503-long", play.status(503, headers=LONG_WAIT), 1, 503, "provider_unavailable", "unavailable", 503),
    fault("401", play.status(401), 1, 500, "provider_error", "credentials", 401),
    fault("403", play.status(403), 1, 500, "provider_error", "credentials", 403),
    fault("404", play.status(404), 1, 404, "model_not_found", "not_found", 404),
]  # fmt: skip
WHOLE = [
    *BOTH_MODES,
    fault("not-json", play.raw(200, b"<html>"), 1, 500, "provider_error", "unusable", 200),
    fault("no-choices", play.raw(200, b'{"id":"x"}'), 1, 500, "provider_error", "unusable", 200),
]  # fmt: skip
STREAMED = [
    *BOTH_MODES,
    fault("error-before-output", play.stream(ROLE, ERROR_EVENT), *UNAVAILABLE, 503),
    fault("truncated-before-output", play.stream(ROLE, end="hang_up"), *UNAVAILABLE),
    fault("stall-before-output", play.stream(ROLE, end="hang"), *TIMEOUT),
    fault("malformed-chunk", play.stream(ROLE, b"data: {nonsense\n\n"), 1, 500, "provider_error", "unusable", 200),
    fault("preamble-for-ever", play.stream(*SLOW_PREAMBLE), *TIMEOUT),
]  # fmt: skip


Played = Callable[..., tuple[Gateway, dict[str, Script]]]


@pytest.fixture
def played(routed: Routed, brisk_routed: Routed) -> Played:
    """Makes a project whose provider openai fails so, on a service that waits long, or on `brisk` where the fault is a
    time-out."""

    def make(fault: Fault, *settings: dict[str, Any], **others: list[Step]) -> tuple[Gateway, dict[str, Script]]:
        return (brisk_routed if fault.is_waited_for else routed)(*settings, openai=[fault.step], **others)

    return make


def errors(record: RequestRecord) -> list[tuple[str, int, str]]:
    return [(attempt.provider, attempt.status, attempt.error) for attempt in record.attempts]


def assert_served(response: httpx2.Response, *, provider: str, model: str, retries: int, original: str = "") -> None:
    assert response.status_code == 200, response.text
    assert response.headers["x-svc-provider"] == provider
    assert response.headers["x-svc-model-used"] == model
    assert response.headers["x-svc-retry-count"] == str(retries)
    assert response.headers.get("x-svc-original-model", "") == original
    assert response.headers.get("x-svc-fallback-used", "") == ("true" if original else "")


def statuses(fault: Fault) -> list[tuple[int, str]]:
    return [(fault.upstream_status, fault.error)] * fault.tries


@pytest.mark.parametrize("fault", WHOLE)
def test_whole__provider_fails_alone__documented_status_and_one_record(played: Played, fault: Fault) -> None:
    gateway, scripts = played(fault)

    assert_failed(gateway.post(body()), fault, gateway, len(scripts["openai"].received))


@pytest.mark.parametrize("fault", STREAMED)
def test_stream__provider_fails_alone__documented_status_and_one_record(played: Played, fault: Fault) -> None:
    gateway, scripts = played(fault)
    response = gateway.post(body(stream=True))

    if fault.is_waited_for:
        # A heartbeat committed the status while the provider was silent, so the failure is the last event.
        assert [error["code"] for error in read_stream(response.content).errors] == [fault.code]
        assert gateway.record(response).error_code == fault.code
        assert len(scripts["openai"].received) == fault.tries
    else:
        assert_failed(response, fault, gateway, len(scripts["openai"].received))


def assert_failed(response: httpx2.Response, fault: Fault, gateway: Gateway, received: int) -> None:
    assert_error(response, fault.status, fault.code)
    assert received == fault.tries
    assert response.headers["x-svc-retry-count"] == str(fault.tries - 1)
    for name, value in fault.headers.items():
        assert response.headers[name] == value
    record = gateway.record(response)
    assert (record.outcome, record.status_code, record.error_code) == (Outcome.ERROR, fault.status, fault.code)
    assert errors(record) == [("openai", *what) for what in statuses(fault)]
    assert record.retry_count == fault.tries - 1


@pytest.mark.parametrize("fault", WHOLE)
def test_whole__first_provider_fails__second_serves(played: Played, fault: Fault) -> None:
    gateway, scripts = played(fault, {"fallback_order": ["groq"]}, groq=[play.answer("Saved")])

    response = gateway.post(body())

    assert_served(
        response, provider="groq", model="llama-3.3-70b-versatile", retries=fault.tries - 1, original="openai/gpt-4o"
    )
    assert response.json()["choices"][0]["message"]["content"] == "Saved"
    assert_failed_over(gateway.record(response), fault)
    assert len(scripts["openai"].received) == fault.tries


@pytest.mark.parametrize("fault", STREAMED)
def test_stream__first_provider_fails_before_output__second_serves(played: Played, fault: Fault) -> None:
    gateway, _ = played(fault, {"fallback_order": ["groq"]}, groq=[play.answer("Saved by it")])

    response = gateway.post(body(stream=True))

    assert response.status_code == 200
    assert read_stream(response.content).text == "Saved by it"
    assert_failed_over(gateway.record(response), fault)


def assert_failed_over(record: RequestRecord, fault: Fault) -> None:
    assert (record.outcome, record.provider, record.fallback_used) == (Outcome.SUCCESS, "groq", True)
    assert (record.requested_model, record.model) == ("openai/gpt-4o", "llama-3.3-70b-versatile")
    assert errors(record) == [*(("openai", *what) for what in statuses(fault)), ("groq", 200, "")]
    assert record.retry_count == fault.tries - 1


@pytest.mark.parametrize("stream", [False, True])
def test_providers__one_is_limited_and_another_fails__client_gets_retry_after(routed: Routed, stream: bool) -> None:
    limited = play.status(429, headers={"retry-after": "3600"})
    gateway, _ = routed(
        {"fallback_order": ["openai", "groq"], "retry_enabled": False}, openai=[limited], groq=[play.status(503)]
    )

    response = gateway.post(body(stream=stream))

    assert_error(response, 503, "provider_unavailable")
    assert 3500 < int(response.headers["retry-after"]) <= 3600
    assert [attempt.status for attempt in gateway.record(response).attempts] == [429, 503]


@pytest.mark.parametrize("retry_after", ["86400", "3600000"])
def test_provider__long_retry_after__client_gets_an_hour(routed: Routed, retry_after: str) -> None:
    gateway, _ = routed(openai=[play.status(429, headers={"retry-after": retry_after})])

    assert gateway.post(body()).headers["retry-after"] == "3600"


def test_circuit__open_after_failures__client_gets_retry_after(routed: Routed) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai=[play.status(500)])

    answers = [gateway.post(body()) for _ in range(30)]

    assert {answer.status_code for answer in answers} == {503}
    assert "retry-after" not in answers[0].headers
    assert 0 < int(answers[-1].headers["retry-after"]) <= 600


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("stream", [False, True])
def test_request_at_fault__is_never_retried_or_failed_over(routed: Routed, status: int, stream: bool) -> None:
    gateway, scripts = routed(
        {"fallback_order": ["groq"]}, openai=[play.status(status, "no such thing")], groq=[play.answer()]
    )

    response = gateway.post(body(stream=stream))

    assert_error(response, 400, "provider_rejected")
    assert "no such thing" in response.json()["error"]["message"]
    assert (len(scripts["openai"].received), len(scripts["groq"].received)) == (1, 0)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (CUT, "provider_unavailable"),
        (play.stream(ROLE, play.chunk({"content": "Hel"}), ERROR_EVENT), "provider_unavailable"),
        (play.stream(ROLE, play.chunk({"content": "Hel"}), end="reset"), "provider_unavailable"),
        (play.stream(ROLE, play.chunk({"content": "Hel"}), end="hang"), "provider_timeout"),
        (play.stream(ROLE, play.chunk({"content": "Hel"}), b"data: {nonsense\n\n"), "provider_error"),
        (play.stream(ROLE, play.chunk({"content": "Hel"})), "provider_error"),
    ],
    ids=["hang-up", "error-event", "reset", "stall", "malformed", "no-terminator"],
)
def test_stream__breaks_after_output__one_error_event_and_no_second_start(
    routed: Routed, brisk_routed: Routed, end: Step, code: str
) -> None:
    made = brisk_routed if code == "provider_timeout" else routed
    gateway, scripts = made({"fallback_order": ["groq"]}, openai=[end], groq=[play.answer()])

    response = gateway.post(body(model=f"openai/{PRICED_MODEL}", stream=True))

    stream = read_stream(response.content)
    assert [error["code"] for error in stream.errors] == [code]
    assert stream.text == "Hel"
    assert (len(scripts["openai"].received), len(scripts["groq"].received)) == (1, 0)
    record = gateway.record(response)
    assert (record.outcome, record.error_code, record.tokens_estimated) == (Outcome.ERROR, code, True)
    assert record.completion_tokens > 0
    assert Decimal(record.cost_usd) > 0
    (attempt,) = record.attempts
    assert attempt.cost_usd == record.cost_usd


def test_stream__slow_drip_within_the_limits__is_served_whole(brisk_routed: Routed) -> None:
    drip = [piece for event in play.text_events("slow ", "but ", "sure") for piece in (event, 0.5)]
    gateway, _ = brisk_routed(openai=[play.stream(*drip)])

    response = gateway.post(body(stream=True))

    assert read_stream(response.content).text == "slow but sure"
    assert_served(response, provider="openai", model="gpt-4o", retries=0)


def test_retry__second_try_succeeds__is_counted_and_priced_once(routed: Routed) -> None:
    gateway, scripts = routed(openai=[play.status(503), play.answer("Second")])

    response = gateway.post(body())

    assert_served(response, provider="openai", model="gpt-4o", retries=1)
    record = gateway.record(response)
    assert errors(record) == [("openai", 503, "unavailable"), ("openai", 200, "")]
    assert [attempt.cost_usd for attempt in record.attempts] == ["", record.cost_usd]
    assert len(scripts["openai"].received) == 2
    assert scripts["openai"].received[0].body == scripts["openai"].received[1].body


@pytest.mark.parametrize(("settings", "tries"), [
    ({"retry_enabled": False}, 1),
    ({"retry_max_attempts": 1}, 1),
    ({"retry_max_attempts": 4}, 4),
])  # fmt: skip
def test_retry__as_the_project_set_it__so_many_calls(routed: Routed, settings: dict[str, Any], tries: int) -> None:
    gateway, scripts = routed(settings, openai=[play.status(503)])

    response = gateway.post(body())

    assert_error(response, 503, "provider_unavailable")
    assert len(scripts["openai"].received) == tries


def test_retry__with_fallbacks__all_calls_together_are_bounded(routed: Routed) -> None:
    failing = [play.status(503)]
    gateway, scripts = routed(
        {"retry_max_attempts": 3, "fallback_order": ["groq", "xai"]}, openai=failing, groq=failing, xai=failing
    )

    response = gateway.post(body())

    assert_error(response, 503, "provider_unavailable")
    assert sum(len(script.received) for script in scripts.values()) <= 3 + 2
    assert all(script.received for script in scripts.values())
    assert len(gateway.record(response).attempts) == sum(len(script.received) for script in scripts.values())


def test_failed_attempt__that_was_billed__is_part_of_the_cost(routed: Routed) -> None:
    counted = play.chunk({"role": "assistant", "content": ""}, usage=play.USAGE)
    gateway, _ = routed(openai=[play.stream(counted, ERROR_EVENT), play.answer("Second")])

    response = gateway.post(body(model=f"openai/{PRICED_MODEL}", stream=True))

    record = gateway.record(response)
    first, second = record.attempts
    assert (first.prompt_tokens, first.completion_tokens) == (11, 7)
    assert (second.prompt_tokens, second.completion_tokens) == (11, 7)
    assert (record.prompt_tokens, record.completion_tokens) == (11, 7)
    assert Decimal(first.cost_usd) == Decimal(second.cost_usd) > 0
    assert Decimal(record.cost_usd) == Decimal(first.cost_usd) + Decimal(second.cost_usd)
