"""What users did after answers of both arms: asked the same again, edited the answer, or left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from analytics.agreement import share_of
from analytics.deletion.services import finish_due
from analytics.errors import AnalyticsLimitError
from analytics.queries.variants import signals as query
from analytics.request_log.record import Outcome, SpoolEntry
from analytics.scores.services import record_feedback
from analytics.scores.sync.run import copy_due
from core.roles import Role
from rollouts.comparison import metrics
from rollouts.comparison.signals import SIGNALS
from rollouts.models import Rollout, RolloutEvaluation
from rollouts.verdicts.evaluate import evaluate_rollout
from tests.factories.analytics import make_entry, store, store_as_of_then
from tests.factories.core import make_staff
from tests.factories.rollouts import make_rollout
from tests.rollouts.conftest import PATH, Api
from tests.rollouts.request_log import begun

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

QUESTION = "How do I reset my password?"
SAME = "how do i RESET my password"
TEN = "one two three four five six seven eight nine ten"
OTHER = "What does the premium plan cost?"


@dataclass
class Log:
    """The requests of a rollout that began six hours ago."""

    rollout: Rollout
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    entries: list[SpoolEntry] = field(default_factory=list)

    def ask(self, session: str, text: str | None, ago: timedelta, arm: str = "target", **values: Any) -> SpoolEntry:
        """Adds an answered request whose last message is the user's; without a text nothing was stored of it."""
        messages = None if text is None else [{"role": "user", "content": text}]
        return self.send(session, messages, ago, arm, **values)

    def send(
        self, session: str, messages: Sequence[Any] | None, ago: timedelta, arm: str = "target", **values: Any
    ) -> SpoolEntry:
        given = {
            "ts": int((self.now - ago).timestamp() * 1_000_000),
            "project_id": str(self.rollout.project_id),
            "prompt_config_id": str(self.rollout.config_id),
            "prompt_version": 2 if arm == "target" else 1,
            "rollout_id": str(self.rollout.pk),
            "rollout_stage": 1,
            "variant": arm,
            "alloc_unit": len(self.entries) + 1,
            "session_id": session,
            "latency_ms": 1000,
            **values,
        }
        body = b"" if messages is None else json.dumps({"model": "m", "messages": list(messages)}).encode()
        self.entries.append(make_entry(body, **given))
        return self.entries[-1]


@pytest.fixture
def log(api: Api) -> Log:
    return Log(begun(make_rollout(api.config, started=True), 360))


def signals_of(api: Api, log: Log) -> Any:
    response = api.client.get(f"{PATH}/{log.rollout.pk}/metrics")
    assert response.status_code == 200, response.content
    return response.json()["signals"]


def counts(arm: Any) -> tuple[int, int, dict[str, int]]:
    return arm["event_count"], arm["request_count"], arm["not_counted"]


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def test_signals__pending_or_without_requests__nothing(api: Api, log: Log) -> None:
    nothing = {"low": None, "high": None, "confidence": 0.95}
    arm = {"event_count": 0, "request_count": 0, "share": None, "interval": nothing, "not_counted": {}}

    found = signals_of(api, log)

    assert found == {
        name: {"target": arm, "baseline": arm, "difference": None, "interval": nothing} for name in SIGNALS
    }


@pytest.mark.parametrize(
    ("first", "second", "after", "asked"),
    [
        (QUESTION, SAME, minutes(2), 1),
        (QUESTION, OTHER, minutes(2), 0),
        (QUESTION, SAME, minutes(10), 1),
        (QUESTION, SAME, minutes(10.1), 0),
        # The second one came before the first was answered: two requests at once, and no second question.
        (QUESTION, SAME, timedelta(milliseconds=900), 0),
        (QUESTION, SAME, timedelta(0), 0),
        ("", "", minutes(2), 0),
        ("?!", "?!", minutes(2), 0),
        (TEN, f"{TEN} eleven twelve", minutes(2), 1),
        (TEN, f"{TEN} eleven twelve thirteen", minutes(2), 0),
        # Beyond so many characters texts are not compared.
        ("word " * 1_000 + "a b c", "word " * 1_000 + "x y z", minutes(2), 1),
        ("x" * 900_000, "y" * 900_000, minutes(2), 0),
        ("x" * 2_000_000, "x" * 2_000_000, minutes(2), 0),
        ("half \ud83d of a pair", "half \ud83d of a pair", minutes(2), 1),
    ],
)  # fmt: skip
def test_asked_again__two_texts__counted_where_they_are_alike_and_soon(
    api: Api, log: Log, spool: Path, first: str, second: str, after: timedelta, asked: int
) -> None:
    log.ask("s", first, minutes(60))
    log.ask("s", second, minutes(60) - timedelta(seconds=1) - after + timedelta(seconds=after < minutes(1)))
    store(spool, *log.entries)

    found = signals_of(api, log)["asked_again"]["target"]

    assert counts(found) == (asked, 2, {})


def test_asked_again__steps_of_tools__only_what_the_user_says(api: Api, log: Log, spool: Path) -> None:
    user = {"role": "user", "content": QUESTION}
    call: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": []}
    result = {"role": "tool", "tool_call_id": "1", "content": "Nothing"}
    answer = {"role": "assistant", "content": "No"}
    log.send("s", [user], minutes(90))
    log.send("s", [user, call, result], minutes(89))
    log.send("s", [user, call, result, answer, user], minutes(88))
    store(spool, *log.entries)

    found = signals_of(api, log)["asked_again"]["target"]

    # The step repeats the question, and its user has not; after the answer the user has.
    assert counts(found) == (1, 3, {})


def test_asked_again__chain_of_prompts__the_next_request_to_the_same_prompt(api: Api, log: Log, spool: Path) -> None:
    log.ask("s", QUESTION, minutes(90))
    log.ask("s", QUESTION, minutes(89), prompt_config_id=str(uuid4()), rollout_id="", variant="", alloc_unit=0)
    log.ask("s", OTHER, minutes(88))
    store(spool, *log.entries)

    assert counts(signals_of(api, log)["asked_again"]["target"]) == (0, 2, {})


def test_signals__session_that_changes_arm__counted_for_the_arm_that_answered(api: Api, log: Log, spool: Path) -> None:
    for number in range(3):
        log.ask(f"s{number}", QUESTION, minutes(100), "baseline")
        log.ask(f"s{number}", SAME, minutes(98), "target")
        log.ask(f"s{number}", OTHER, minutes(96), "baseline" if number else "target")
    # A second question that fails, or goes to no arm, is one all the same.
    log.ask("t", QUESTION, minutes(100), "baseline")
    log.ask("t", SAME, minutes(98), "target", outcome=Outcome.ERROR, status_code=500, error_code="provider_error")
    store(spool, *log.entries)

    found = signals_of(api, log)

    assert counts(found["asked_again"]["baseline"]) == (4, 6, {})
    assert counts(found["asked_again"]["target"]) == (0, 4, {})
    assert counts(found["left"]["baseline"]) == (2, 6, {})
    assert counts(found["left"]["target"]) == (1, 4, {})


def test_signals__answers_that_are_not_counted__by_reason(api: Api, log: Log, spool: Path) -> None:
    log.ask("", QUESTION, minutes(100))
    log.ask("", QUESTION, minutes(1))
    log.ask("s", None, minutes(100))
    log.ask("s", QUESTION, minutes(99))
    log.ask("s", QUESTION, minutes(30))
    log.ask("s", QUESTION, minutes(5))
    # None of these was answered and compared.
    log.ask("s", QUESTION, minutes(80), outcome=Outcome.ERROR, status_code=500)
    log.ask("s", QUESTION, minutes(79), outcome=Outcome.CANCELLED, ttft_ms=10)
    log.ask("s", QUESTION, minutes(78), cache_status="hit")
    log.ask("s", QUESTION, minutes(77), alloc_unit=0)
    store(spool, *log.entries)

    found = signals_of(api, log)

    assert counts(found["asked_again"]["target"]) == (0, 2, {"no_session": 2, "no_text": 1, "too_recent": 1})
    assert counts(found["edited"]["target"]) == (0, 3, {"too_recent": 3})
    assert counts(found["left"]["target"]) == (0, 2, {"no_session": 2, "too_recent": 2})
    assert counts(found["left"]["baseline"]) == (0, 0, {})


def test_left__last_of_its_session__whoever_comes_later(api: Api, log: Log, spool: Path) -> None:
    for session in ("left", "came back", "playground", "same time"):
        log.ask(session, QUESTION, minutes(300))
        log.ask(session, OTHER, minutes(200))
    of_nobody: dict[str, Any] = {"rollout_id": "", "variant": "", "alloc_unit": 0}
    log.ask("came back", OTHER, minutes(2), prompt_config_id=str(uuid4()), **of_nobody)
    log.ask("playground", OTHER, minutes(2), source="playground", **of_nobody)
    log.ask("same time", OTHER, minutes(200))
    store(spool, *log.entries)

    # Of two at the same time one is the last.
    assert counts(signals_of(api, log)["left"]["target"]) == (3, 9, {})


def test_edited__feedback_on_answers__each_answer_once(api: Api, log: Log, spool: Path) -> None:
    old = [log.ask(f"s{number}", QUESTION, minutes(120)) for number in range(4)]
    failed = log.ask("s0", QUESTION, minutes(120), outcome=Outcome.ERROR, status_code=500)
    young = log.ask("s0", QUESTION, minutes(20))
    of_baseline = log.ask("s0", QUESTION, minutes(120), "baseline")
    store(spool, *log.entries)
    for entry in (old[0], old[0], old[1], failed, young, of_baseline):
        edit(log, entry)
    edit(log, old[2], edited=False, score=1)
    edit(log, make_entry(session_id="s0"))
    copy_due()

    found = signals_of(api, log)["edited"]

    assert counts(found["target"]) == (2, 4, {"too_recent": 1})
    assert counts(found["baseline"]) == (1, 1, {})
    assert found["difference"] == pytest.approx(2 / 4 - 1)
    share = share_of(2, 4)
    assert share is not None
    assert found["target"]["interval"] == {
        "low": pytest.approx(share.low), "high": pytest.approx(share.high), "confidence": 0.95
    }  # fmt: skip


def edit(log: Log, entry: SpoolEntry, *, edited: bool = True, score: int | None = None) -> None:
    record_feedback(
        project_id=log.rollout.project_id,
        session_id=entry.record.session_id,
        request_id=UUID(entry.record.request_id),
        score=score,
        text="",
        actor="",
        edited=edited,
    )


def test_signals__events_of_one_session__say_less_than_of_several(api: Api, log: Log, spool: Path) -> None:
    for number in range(20):
        log.ask("stuck", QUESTION, minutes(300 - 2 * number), "target")
        log.ask(f"a{number // 2}", QUESTION, minutes(300 - 2 * (number % 2)), "baseline")
    store(spool, *log.entries)

    found = signals_of(api, log)["asked_again"]

    assert (counts(found["target"]), counts(found["baseline"])) == ((19, 20, {}), (10, 20, {}))
    apart, together = share_of(10, 20), share_of(1, 20 / 19)
    assert apart is not None
    assert together is not None
    assert found["baseline"]["interval"]["low"] == pytest.approx(apart.low)
    assert found["target"]["interval"]["low"] == pytest.approx(together.low)
    assert found["interval"]["low"] < 0 < found["difference"] < found["interval"]["high"]


def test_signals__erased_request_and_session__not_counted_any_more(api: Api, log: Log, spool: Path) -> None:
    gone = log.ask("s", QUESTION, minutes(100))
    log.ask("s", SAME, minutes(98))
    log.ask("erased", QUESTION, minutes(100))
    log.ask("erased", SAME, minutes(98))
    store(spool, *log.entries)
    edit(log, gone)
    copy_due()
    before = signals_of(api, log)
    assert counts(before["asked_again"]["target"]) == (2, 4, {})
    assert counts(before["edited"]["target"]) == (1, 4, {})

    assert api.client.delete(f"/api/llm/requests/{gone.record.request_id}").status_code == 204
    assert api.client.delete("/api/llm/sessions/erased").status_code in (202, 204)
    finish_due()
    copy_due()

    found = signals_of(api, log)
    assert counts(found["asked_again"]["target"]) == (0, 1, {"no_session": 3})
    assert counts(found["left"]["target"]) == (1, 1, {"no_session": 3})
    assert counts(found["edited"]["target"]) == (0, 4, {})


def test_signals__many_sessions__a_sample_of_each_arm(
    api: Api, log: Log, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "SAMPLE", 40)
    for number in range(200):
        log.ask(f"s{number}", QUESTION, minutes(100))
        log.ask(f"s{number}", SAME, minutes(98))
    log.ask("small", QUESTION, minutes(100), "baseline")
    store(spool, *log.entries)

    found = signals_of(api, log)

    for name in ("asked_again", "left"):
        events, requests, not_counted = counts(found[name]["target"])
        assert 15 < requests < 80
        assert not_counted == {"not_sampled": 400 - requests}
        assert 0 < events < requests
    assert counts(found["left"]["baseline"]) == (1, 1, {})
    assert signals_of(api, log)["left"] == found["left"]


def test_signals__whatever_users_do__verdict_is_the_same(api: Api, log: Log, spool: Path) -> None:
    for number in range(60):
        arm = "target" if number % 2 else "baseline"
        made = log.ask(f"s{number}", QUESTION, minutes(100), arm)
        log.ask(f"s{number}", SAME if arm == "target" else OTHER, minutes(98), arm)
        if arm == "target":
            edit(log, made)
    store_as_of_then(spool, *log.entries)
    copy_due()

    evaluate_rollout(log.rollout.pk)

    body = api.client.get(f"{PATH}/{log.rollout.pk}/metrics").json()
    again = body["signals"]["asked_again"]
    assert (again["target"]["share"], again["baseline"]["share"]) == (0.5, 0)
    assert (body["signals"]["edited"]["target"]["share"], body["signals"]["edited"]["baseline"]["share"]) == (0.5, 0)
    verdict = RolloutEvaluation.objects.get(rollout=log.rollout).verdict
    assert not set(verdict["metrics"]) & set(SIGNALS)
    assert "failing" not in {one["status"] for one in body["metrics"].values()}
    assert not any(one["decides"] and one["status"] == "failing" for one in body["metrics"].values())


def test_page__signals__as_the_api_has_them(api: Api, log: Log, spool: Path, client: Client) -> None:
    log.ask("<b>", QUESTION, minutes(100))
    log.ask("<b>", SAME, minutes(98))
    log.ask("", SAME, minutes(98), "baseline")
    store(spool, *log.entries)
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, log.rollout.project))

    answer: Any = client.get(f"/admin/rollouts/rollout/{log.rollout.pk}/change/")

    text = " ".join(b"".join(answer.streaming_content).decode().split())
    panel = text[text.index('id="panel-signals"') : text.index('id="panel-segments"')]
    assert "asked the same again within ten minutes" in panel
    assert "50 % (9.5 % to 90.5 %)" in panel
    assert "1 of 2" in panel
    assert "not counted: no session 1" in panel
    assert QUESTION not in panel


def test_metrics__log_too_large_for_signals__the_other_figures(
    api: Api, log: Log, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.ask("s", QUESTION, minutes(100))
    store(spool, *log.entries)

    def too_large(_: object) -> object:
        raise AnalyticsLimitError("Too large.")

    monkeypatch.setattr(metrics, "signals_of", too_large)

    body = api.client.get(f"{PATH}/{log.rollout.pk}/metrics").json()

    assert body["signals"] is None
    assert body["target"]["request_count"] == 1
