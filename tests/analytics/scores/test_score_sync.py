"""Scores are copied to ClickHouse once, with what is known of their requests."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import F
from django.utils import timezone

from analytics.clickhouse import client
from analytics.errors import AnalyticsLimitError
from analytics.models import Feedback, Score
from analytics.request_log.record import SpoolEntry
from analytics.scores.services import (
    record_feedback,
)
from analytics.scores.sync import requests, run
from analytics.scores.sync.run import copy_due
from analytics.tasks import copy_scores
from core.models import Project
from tests.analytics.scores.copied import copies, feedback_copies, values
from tests.factories.analytics import make_entry, store, uuid7
from tests.factories.core import make_project
from tests.factories.scores import make_score
from tests.store_away import store_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

CONFIG, ROLLOUT = str(uuid4()), str(uuid4())


def request_entry(project: Project, **values: Any) -> SpoolEntry:
    given = {"model": "gpt-x", "prompt_config_id": CONFIG, "prompt_version": 3, "rollout_id": ROLLOUT}
    return make_entry(project_id=str(project.pk), **{**given, "variant": "target", **values})


def test_copy__score_of_a_stored_request__knows_what_it_was(project: Project, spool: Path) -> None:
    entry = request_entry(project)
    store(spool, entry)
    make_score(project, request_id=entry.record.request_id)

    assert copy_due() == 1

    (copy,) = copies(project)
    assert copy.request_known
    assert (copy.model, copy.prompt_version, copy.variant) == ("gpt-x", 3, "target")
    assert Score.objects.get().copy_due_at is None
    assert copy_due() == 0


def test_copy__request_stored_later__found_at_a_later_look(
    project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = request_entry(project)
    score = make_score(project, request_id=entry.record.request_id)
    copy_due()
    assert [copy.request_known for copy in copies(project)] == [False]
    due = Score.objects.get().copy_due_at
    assert due is not None and due > timezone.now()
    assert copy_due() == 0

    store(spool, entry)
    monkeypatch.setattr(timezone, "now", lambda: due)
    assert copy_due() == 1

    assert [(copy.id, copy.request_known, copy.model) for copy in copies(project)] == [(score.pk, True, "gpt-x")]
    assert Score.objects.get().copy_due_at is None


def test_copy__request_never_stored__given_up_after_days(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    score = make_score(project, request_id=uuid7(1_780_000_000_000_000))
    looks, now = 0, score.updated_at
    while (due := Score.objects.get().copy_due_at) is not None:
        now, looks = max(now, due), looks + 1
        monkeypatch.setattr(timezone, "now", lambda moment=now: moment)
        copy_due()

    assert now - score.updated_at > timedelta(days=2)
    assert looks < 60
    assert len(copies(project)) == 1


def test_copy__request_not_there_at_a_later_look__not_stored_once_more(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_score(project, request_id=uuid7(1_780_000_000_000_000))
    inserted: list[int] = []
    insert = client.insert

    def counted(table: str, columns: Any, copies: Any, *, token: str) -> None:
        inserted.append(len(copies))
        insert(table, columns, copies, token=token)

    monkeypatch.setattr(client, "insert", counted)
    copy_due()
    due = Score.objects.get().copy_due_at
    monkeypatch.setattr(timezone, "now", lambda: due)
    assert copy_due() == 1

    assert inserted == [1]
    assert [copy.request_known for copy in copies(project)] == [False]


def test_copy__looking_for_requests_takes_too_long__copied_without_them(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_score(project, request_id=uuid7(1_780_000_000_000_000), score_value=7)

    def refuse(*_: Any) -> None:
        raise AnalyticsLimitError("too much")

    monkeypatch.setattr(requests, "find_requests", refuse)
    copy_due()

    assert values(project) == [7]


def test_copy__everything_made_due_again__fills_new_tables(project: Project) -> None:
    make_score(project, request_id=uuid7(1_780_000_000_000_000), score_value=7)
    record_feedback(project_id=project.pk, session_id="s", score=4, text="", actor="")
    copy_due()
    client.execute("TRUNCATE TABLE scores")
    client.execute("TRUNCATE TABLE feedback")

    Score.objects.update(copy_due_at=F("updated_at"))
    Feedback.objects.update(copy_due_at=F("created_at"))
    copy_due()

    assert values(project) == [7]
    assert feedback_copies(project) == [("s", 4, False)]


@pytest.mark.parametrize("request_id", ["mine", str(uuid4()), "ffffffff-ffff-7fff-bfff-ffffffffffff", "ü' \\ %"])
def test_copy__ids_that_are_not_the_gateways__copied_without_a_request(project: Project, request_id: str) -> None:
    make_score(project, request_id=request_id)

    copy_due()

    assert [(copy.request_id, copy.request_known) for copy in copies(project)] == [(request_id, False)]


def test_copy__request_of_another_project__stays_unknown(project: Project, spool: Path) -> None:
    theirs = request_entry(make_project())
    store(spool, theirs)
    make_score(project, request_id=theirs.record.request_id)

    copy_due()

    assert [(copy.request_known, copy.model) for copy in copies(project)] == [(False, "")]


def test_copy__changed_score__replaces_its_copy(project: Project) -> None:
    for value in (10, 20, 30):
        make_score(project, score_id="mine", score_value=value)
        copy_due()
        assert values(project) == [value]


def test_copy__changed_while_being_copied__copied_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    make_score(project, score_id="mine", score_value=10)
    insert = client.insert

    def change_and_insert(*args: Any, **options: Any) -> None:
        monkeypatch.setattr(client, "insert", insert)
        make_score(project, score_id="mine", score_value=20)
        insert(*args, **options)

    monkeypatch.setattr(client, "insert", change_and_insert)

    copy_due()
    assert Score.objects.get().copy_due_at is not None
    copy_due()

    assert values(project) == [20]


def test_copy__two_workers__each_row_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in range(5):
        make_score(project, score_value=value)
    insert = client.insert

    def another_worker_too(*args: Any, **options: Any) -> None:
        insert(*args, **options)
        insert(*args, **options)

    monkeypatch.setattr(client, "insert", another_worker_too)
    copy_due()

    assert values(project) == list(range(5))


def test_copy__old_version_arrives_last__does_not_win(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    make_score(project, score_id="mine", score_value=10)
    late: list[Any] = []
    insert = client.insert
    monkeypatch.setattr(client, "insert", lambda *args, **options: late.append((args, options)))
    copy_due()
    monkeypatch.setattr(client, "insert", insert)

    make_score(project, score_id="mine", score_value=20)
    copy_due()
    for args, options in late:
        insert(*args, **options)

    assert values(project) == [20]


def test_copy__more_than_a_chunk__all(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHUNK", 3)
    for value in range(8):
        make_score(project, score_value=value)

    assert copy_due() == 8
    assert values(project) == list(range(8))


def test_copy__category__short_reason_is_the_label(project: Project) -> None:
    make_score(project, score_type="category", score_value=1, reason="off topic")
    make_score(project, score_type="category", score_value=2, reason="off topic", score_label="bad")
    make_score(project, score_type="category", score_value=3, reason="x" * 101)
    make_score(project, score_type="number", score_value=4, reason="off topic")

    copy_due()

    assert [copy.score_label for copy in copies(project)] == ["off topic", "bad", "", ""]


def test_copy_task__store_away__rows_wait_and_nothing_is_lost_or_doubled(project: Project) -> None:
    make_score(project, score_value=1)
    record_feedback(project_id=project.pk, session_id="s", score=4, text="x", actor="")
    with store_away():
        copy_scores()
    assert Score.objects.filter(copy_due_at=None).count() == Feedback.objects.filter(copy_due_at=None).count() == 0

    copy_scores()
    copy_scores()

    assert values(project) == [1]
    assert feedback_copies(project) == [("s", 4, True)]


def test_copy__store_fails_after_taking_the_rows__each_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    make_score(project, score_value=1)
    with monkeypatch.context() as patch:
        patch.setattr(run, "_next_look", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            copy_due()
    assert values(project) == [1]

    copy_due()

    assert values(project) == [1]
