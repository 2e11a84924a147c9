"""`auto_evaluate`: grades of the project's judge model, and answers whose judge fails."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.fakes.scripted import Script, Step, answer, hang, raw, status
from tests.gateway.conftest import Routed
from tests.gateway.playground.calls import MESSAGES, ask, compare, results
from tests.gateway.service import Gateway

JUDGE = "groq/judge-1"
GRADES = {
    "relevance": {"reason": "To the point.", "score": 95},
    "coherence": {"reason": "Clear.", "score": 90},
    "helpfulness": {"reason": "Short.", "score": 70},
}
SCORES = {"relevance": 95, "coherence": 90, "helpfulness": 70}


def judged(routed: Routed, *judge: Step, **settings: Any) -> tuple[Gateway, Script]:
    gateway, scripts = routed(
        {"judge_model": JUDGE, "retry_enabled": False, **settings}, openai=[answer("Paris")], groq=list(judge)
    )
    return gateway, scripts["groq"]


def until_judged(gateway: Gateway, **fields: Any) -> dict[str, Any]:
    """Repeats the request until the settings have reached the worker and the answer is graded."""
    response: httpx2.Response = gateway.service.until(
        lambda: ask(gateway, auto_evaluate=True, **fields),
        lambda found: found.status_code != 200 or found.json()["evaluation"]["judge_model"] == JUDGE,
    )
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_evaluation__judge_answers__scores_are_shown_and_stored(routed: Routed) -> None:
    gateway, script = judged(routed, answer(json.dumps(GRADES)))
    result = until_judged(gateway)
    assert result["response"]["content"] == "Paris"
    assert result["scores"] == SCORES
    evaluation = result["evaluation"]
    assert evaluation["reasons"]["relevance"] == "To the point."
    assert evaluation["error"] is None
    listed = gateway.manage("GET", f"scores/request/{result['request_id']}").json()
    assert {row["score_name"]: row["score_value"] for row in listed["results"]} == SCORES
    assert {row["evaluator_type"] for row in listed["results"]} == {"llm_judge"}
    assert {row["score_type"] for row in listed["results"]} == {"number"}
    record = gateway.record(evaluation["request_id"])
    assert record.source == "judge"
    assert record.attributes == {"judged_request_id": result["request_id"]}
    sent = json.loads(script.received[-1].body)
    assert sent["model"] == "judge-1"
    assert sent["response_format"]["json_schema"]["strict"] is True
    seen = json.loads(sent["messages"][1]["content"])
    assert seen == {"conversation": MESSAGES, "answer": {"content": "Paris"}}


def test_evaluation__project_keeps_no_texts__keeps_no_reasons(routed: Routed) -> None:
    gateway, _ = judged(routed, answer(json.dumps(GRADES)), log_content=False)
    result = until_judged(gateway)
    listed = gateway.manage("GET", f"scores/request/{result['request_id']}").json()
    assert {row["reason"] for row in listed["results"]} == {""}


def test_evaluation__without_judge_model__answer_comes_and_says_why(routed: Routed) -> None:
    gateway, _ = routed({}, openai=[answer("Paris")])
    result = ask(gateway, auto_evaluate=True).json()
    assert result["response"]["content"] == "Paris"
    assert result["scores"] is None
    assert result["evaluation"]["error"]["code"] == "no_judge_model"


@pytest.mark.parametrize(
    ("judge", "code"),
    [
        (status(503), "provider_unavailable"),
        (status(401), "provider_error"),
        (hang, "provider_timeout"),
        (raw(200, b"<html>"), "provider_error"),
        (answer("Splendid, ten out of ten"), "invalid_judgement"),
        (answer(json.dumps({"relevance": {"score": 50, "reason": ""}})), "invalid_judgement"),
        (answer(json.dumps({**GRADES, "coherence": {"score": 101, "reason": ""}})), "invalid_judgement"),
        (answer(json.dumps({**GRADES, "coherence": {"score": "90", "reason": ""}})), "invalid_judgement"),
    ],
    ids=["down", "key", "slow", "html", "prose", "incomplete", "range", "text"],
)
def test_evaluation__judge_fails__answer_comes_and_says_why(routed: Routed, judge: Step, code: str) -> None:
    gateway, _ = judged(routed, judge)
    result = until_judged(gateway)
    assert result["response"]["content"] == "Paris"
    assert result["scores"] is None
    assert result["evaluation"]["error"]["code"] == code
    assert gateway.manage("GET", f"scores/request/{result['request_id']}").json()["count"] == 0


def test_evaluation__guardrails_on__do_not_stop_the_judge(routed: Routed) -> None:
    guardrails = {"trust_mode": "enforce", "blocked_input_topics": ["Paris"]}
    gateway, _ = judged(routed, answer(json.dumps(GRADES)), guardrails=guardrails)
    assert until_judged(gateway)["scores"] == SCORES


def test_evaluation__compare__judges_each_answer(routed: Routed) -> None:
    gateway, _ = judged(routed, answer(f"```json\n{json.dumps(GRADES)}\n```"))
    until_judged(gateway)
    found = results(compare(gateway, "openai/a", "openai/b", "nobody-serves-this", auto_evaluate=True))
    assert [result["scores"] for result in found.values()] == [SCORES, SCORES, None]
    assert found["nobody-serves-this"]["evaluation"] is None
