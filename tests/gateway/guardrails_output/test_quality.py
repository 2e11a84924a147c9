"""Answers that a judge model grades before they go out, through two running workers."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import msgspec
import pytest

from analytics.request_log.quoting import JUDGED_REQUEST
from analytics.request_log.record import RequestRecord
from gateway.guardrails.verdicts import VERDICTS, GuardrailVerdict
from tests.fakes import scripted as play
from tests.fakes.scripted import Script, Step, answer, raw, status
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.spooled import spooled_entries
from tests.gateway.wire import ENDPOINT, assert_closing_chunk, assert_error, body, read_stream
from tests.waiting import TIMEOUT_SECONDS

MODELS = {"model": "openai/gpt-4o", "models": ["groq/other-1"]}


def grades(*scores: float) -> list[Step]:
    return [answer(json.dumps({"quality": {"reason": "so it is", "score": score}})) for score in scores]


def judged(
    routed: Routed, judge: list[Step], *, mode: str = "enforce", **steps: list[Step]
) -> tuple[Gateway, dict[str, Script]]:
    settings = {
        "guardrails": {"trust_mode": mode, "min_quality_score": 70, "mask_output_pii": True},
        "judge_model": "together/judge-1",
    }
    given = {"openai": [answer("a poor answer")], "groq": [answer("a better answer, to ada@example.org")], **steps}
    return routed(settings, together=judge, **given)


def verdicts(project: Gateway, response: Any) -> list[tuple[str, str, float]]:
    encoded = project.record(response).attributes.get(VERDICTS, "[]")
    found = msgspec.json.decode(encoded, type=list[GuardrailVerdict])
    return [(verdict.action, verdict.detail, verdict.score) for verdict in found if verdict.guardrail == "low_quality"]


def judgements(project: Gateway, response: Any, count: int) -> list[RequestRecord]:
    request_id = response.headers["x-request-id"]

    def found() -> list[RequestRecord]:
        records = [entry.record for entry in spooled_entries(project.service.var / "spool")]
        return [record for record in records if record.attributes.get(JUDGED_REQUEST) == request_id]

    return project.service.until(found, lambda records: len(records) >= count)


def scores(project: Gateway, request_id: str) -> list[dict[str, Any]]:
    path = f"scores?project_id={project.project_id}&request_id={request_id}"
    found: list[dict[str, Any]] = project.manage("GET", path).json()["results"]
    return found


def test_a_good_answer_passes_and_its_judgement_is_a_request_of_its_own(routed: Routed) -> None:
    project, scripts = judged(routed, grades(85))
    response = project.post(body(**MODELS))
    assert response.json()["choices"][0]["message"]["content"] == "a poor answer"
    assert verdicts(project, response) == [("passed", "85 of 100, at least 70 is wanted", 0.85)]
    (judgement,) = judgements(project, response, 1)
    assert (judgement.source, judgement.outcome, judgement.prompt_tokens) == ("judge", "success", 11)
    request = json.loads(scripts["together"].received[0].body)
    assert request["response_format"]["json_schema"]["strict"] is True
    assert "a poor answer" in request["messages"][1]["content"]


def test_a_poor_answer_fails_over_once(routed: Routed) -> None:
    project, scripts = judged(routed, grades(20, 90))
    response = project.post(body(**MODELS))
    assert response.json()["choices"][0]["message"]["content"] == "a better answer, to [EMAIL]"
    assert response.headers["x-svc-fallback-used"] == "true"
    assert [action for action, _, _ in verdicts(project, response)] == ["blocked", "passed"]
    record = project.record(response)
    assert [(attempt.provider, attempt.error) for attempt in record.attempts] == [
        ("openai", "low_quality"),
        ("groq", ""),
    ]
    assert record.attempts[0].completion_tokens == 7
    # The judge gets the masked answer.
    assert b"ada@example.org" not in b"".join(received.body for received in scripts["together"].received)


def test_two_poor_answers_are_refused(routed: Routed) -> None:
    project, scripts = judged(routed, grades(20, 30, 99), groq=[answer("worse")])
    response = project.post(body(**{**MODELS, "models": ["groq/other-1", "mistral/third-1"]}))
    assert_error(response, 400, "low_quality", type="guardrail_error", naming="30 of 100")
    assert len(scripts["together"].received) == 2
    (entry,) = project.service.entries(response.headers["x-request-id"])
    assert entry.response == b""


def test_a_poor_answer_without_another_attempt_is_refused(routed: Routed) -> None:
    project, _ = judged(routed, grades(20))
    response = project.post(body(model="openai/gpt-4o"))
    assert_error(response, 400, "low_quality", type="guardrail_error", naming="20 of 100")
    record = project.record(response)
    assert (record.prompt_tokens, record.completion_tokens, record.error_code) == (11, 7, "low_quality")


def test_a_poor_answer_is_refused_when_the_other_attempt_fails(routed: Routed) -> None:
    project, _ = judged(routed, grades(20), groq=[status(500)])
    response = project.post(body(**MODELS))
    assert_error(response, 400, "low_quality", type="guardrail_error")
    assert project.record(response).attempts[0].error == "low_quality"


def test_streams_are_held_until_they_are_judged(routed: Routed) -> None:
    project, _ = judged(routed, grades(20, 90))
    response = project.post(body(**MODELS, stream=True))
    stream = read_stream(response.content)
    assert stream.text == "a better answer, to [EMAIL]"
    assert_closing_chunk(stream)
    assert response.headers["x-svc-model-used"] == "other-1"
    project, _ = judged(routed, grades(20, 30))
    assert_error(project.post(body(**MODELS, stream=True)), 400, "low_quality", type="guardrail_error")


def test_a_stream_that_is_judged_for_long_is_kept_alive(brisk_routed: Routed) -> None:
    heartbeat_seen = threading.Event()

    async def thinks(request: Received, connection: Connection) -> None:
        await asyncio.to_thread(heartbeat_seen.wait, TIMEOUT_SECONDS)
        await poor(request, connection)

    poor, poorer = grades(30, 20)
    project, _ = judged(brisk_routed, [thinks, poorer])
    received = b""
    url = project.service.base_url() + ENDPOINT
    with project.client.stream("POST", url, json=body(**MODELS, stream=True), headers=project.headers) as response:
        for piece in response.iter_bytes():
            received += piece
            heartbeat_seen.set()
    assert received.startswith(b":")
    stream = read_stream(received)
    assert stream.text == ""
    assert [error["code"] for error in stream.errors] == ["low_quality"]


def test_a_stream_that_breaks_while_it_is_held_is_a_status(routed: Routed) -> None:
    project, _ = judged(routed, grades(90), openai=[play.stream(b'data: {"choices":[', end="reset")])
    response = project.post(body(model="openai/gpt-4o", stream=True))
    assert response.status_code in (500, 503)


def test_an_answer_passes_when_the_judge_fails(routed: Routed) -> None:
    for judge in ([status(500)], [answer("no JSON at all")], [raw(200, b"{}", {"content-type": "application/json"})]):
        project, _ = judged(routed, judge)
        response = project.post(body(**MODELS))
        assert response.status_code == 200
        ((action, detail, _),) = verdicts(project, response)
        assert (action, detail[:11]) == ("skipped", "not judged:")


def test_an_answer_passes_when_there_is_no_judge(routed: Routed) -> None:
    project, _ = judged(routed, grades(20))
    project.service.set_routing(project.project_id, judge_model="")
    response = project.service.until(lambda: project.post(body(**MODELS)), lambda one: bool(verdicts(project, one)))
    assert response.status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_nobody_waits_in_monitor(routed: Routed, stream: bool) -> None:
    project, _ = judged(routed, grades(20), mode="monitor")
    response = project.post(body(**MODELS, stream=stream))
    assert "poor" in response.text
    assert verdicts(project, response) == []
    (judgement,) = judgements(project, response, 1)
    assert judgement.source == "judge"
    request_id = response.headers["x-request-id"]
    (score,) = project.service.until(lambda: scores(project, request_id), bool)
    assert (score["score_name"], score["score_value"]) == ("guardrail.low_quality", 20.0)
    assert score["evaluator_type"] == "guardrail"
