"""Questions of operators to the agent, over HTTP on the whole product: its figures are the management API's."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.agent.stories.conftest import Project, answers, looks_up
from tests.waiting import TIMEOUT_SECONDS, wait_until

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

REQUESTS = 6


def this_week() -> dict[str, str]:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    return {"start_date": monday.isoformat(), "end_date": (today + timedelta(days=1, microseconds=-1)).isoformat()}


def row_of(found: dict[str, Any], **expected: Any) -> dict[str, Any] | None:
    rows = (row for row in found["results"] if all(row[name] == value for name, value in expected.items()))
    return next(rows, None)


def test_spend_this_week__by_model__is_what_the_metrics_say(project: Project) -> None:
    for number in range(REQUESTS):
        project.complete(f"question {number} about our tea")

    def shipped() -> bool:
        row = row_of(project.get("metrics/cost/by-model", **this_week()), model="echo")
        if row is None or row["request_count"] < project.answered:
            return False
        if not row["total_cost_usd"]:
            project.complete("No worker knew the price before")
        return bool(row["total_cost_usd"])

    wait_until(shipped, seconds=4 * TIMEOUT_SECONDS, what="the requests in the metrics")

    def answer_text(results: list[dict[str, Any]]) -> str:
        by_model, by_day = results
        row = row_of(by_model, model="echo")
        assert row is not None
        return json.dumps(
            {
                "total": by_model["total_cost_usd"],
                "days": [day["total_cost_usd"] for day in by_day["results"]],
                "model": row,
            }
        )

    project.play(
        looks_up(
            lambda _: [("list_model_costs", {"period": "this_week"}), ("list_daily_costs", {"period": "this_week"})]
        ),
        answers(answer_text),
    )

    answer = project.ask("What did we spend this week and on which model?")

    assert answer.types == [
        "conversation_created", "tool_start", "tool_start", "tool_result", "tool_result", "text_delta", "done",
    ]  # fmt: skip
    reported = json.loads(answer.text)
    by_model = project.get("metrics/cost/by-model", **this_week())
    assert reported["total"] == by_model["total_cost_usd"] > 0
    shown = row_of(by_model, model="echo")
    assert shown is not None
    costs = ("model", "total_cost_usd", "request_count")
    assert {name: reported["model"][name] for name in costs} == {name: shown[name] for name in costs}
    by_day = project.get("metrics/cost/daily", **this_week())
    assert reported["days"] == [day["total_cost_usd"] for day in by_day["results"]]
    assert sum(reported["days"]) == pytest.approx(reported["total"])


def errors_of(requests: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"request_id": row["request_id"], "status_code": row["status_code"], "error": row["error"]}
        for row in requests["results"]
        if row["outcome"] == "error"
    ]


def test_session_about_something__with_its_errors__is_what_the_session_says(project: Project) -> None:
    project.complete("Where is the refund for order ZEBRA-4711?", session="case-17")
    project.complete("And now?", model="sandbox/error-503", session="case-17", status=503)
    project.complete("Something else entirely", session="case-18")

    def shipped() -> bool:
        sessions = project.get("sessions")["results"]
        counts = {row["session_id"]: row["request_count"] for row in sessions}
        return counts.get("case-17") == 2 and counts.get("case-18") == 1

    wait_until(shipped, seconds=4 * TIMEOUT_SECONDS, what="the sessions")

    def session_of(results: list[dict[str, Any]]) -> str:
        (found,) = results
        (session,) = {row["session_id"] for row in found["results"]}
        return str(session)

    def answer_text(results: list[dict[str, Any]]) -> str:
        session, requests = results
        return json.dumps(
            {"session": session["session_id"], "count": session["error_count"], "errors": errors_of(requests)}
        )

    project.play(
        looks_up(lambda _: [("search_requests", {"query": "zebra-4711"})]),
        looks_up(
            lambda results: [
                ("get_session", {"session_id": session_of(results)}),
                ("list_session_requests", {"session_id": session_of(results)}),
            ]
        ),
        answers(answer_text),
    )

    answer = project.ask("Find the session where the user asked about ZEBRA-4711 and show its errors.")

    assert answer.types[-1] == "done", answer.events
    reported = json.loads(answer.text)
    assert reported["session"] == "case-17"
    assert reported["count"] == project.get("sessions/case-17")["error_count"] == 1
    assert reported["errors"] == errors_of(project.get("sessions/case-17/requests"))
    assert reported["errors"][0]["status_code"] == 503


def test_running_rollout__safe_to_promote__is_what_its_metrics_say(project: Project) -> None:
    versions = [{"system_prompt": f"You sell tea, version {number}.", "model": "sandbox/echo"} for number in (1, 2)]
    prompt = project.team.prompt("tea", *versions)
    rollout = prompt.rollout(mode="manual", allocation_type="random", stages=[{"weight": 50}, {"weight": 100}])
    # The rollout has to reach the workers first.
    sent = Counter(
        wait_until(partial(project.arm, f"Which tea, {number}?", "tea"), what="the rollout at the workers")
        for number in range(2 * REQUESTS)
    )

    def metrics() -> Any:
        return project.get(f"prompts/rollouts/{rollout.id}/metrics")

    def counted() -> bool:
        found = metrics()
        return all(found[arm]["request_count"] >= sent[arm] for arm in ("target", "baseline"))

    wait_until(counted, seconds=4 * TIMEOUT_SECONDS, what="the arms' figures")
    figures = ("request_count", "error_rate", "average_latency_ms", "p95_latency_ms", "total_cost_usd")

    def answer_text(results: list[dict[str, Any]]) -> str:
        (found,) = results
        arms = {arm: {name: found[arm].get(name) for name in figures} for arm in ("target", "baseline")}
        return json.dumps({"status": found["overall_status"], **arms})

    project.play(
        looks_up(lambda _: [("list_rollouts", {"status": "running"})]),
        looks_up(lambda results: [("get_rollout_metrics", {"rollout_id": results[0]["results"][0]["id"]})]),
        answers(answer_text),
    )

    answer = project.ask(
        "Is the running rollout safe to promote?", page_context={"page": "rollout", "data": {"id": rollout.id}}
    )

    assert answer.types[-1] == "done", answer.events
    reported, shown = json.loads(answer.text), metrics()
    assert reported["status"] == shown["overall_status"]
    for arm in ("target", "baseline"):
        assert reported[arm] == {name: shown[arm].get(name) for name in figures}, arm
        assert shown[arm]["request_count"] == sent[arm]
