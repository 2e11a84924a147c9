"""Concurrent calls, each on a connection of its own, against PostgreSQL."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from analytics.models import CopyWithdrawal, Score
from analytics.scores.services import NewScore, delete_scores_of, record_score, record_scores
from tests.at_once import at_once
from tests.factories.core import make_project

pytestmark = pytest.mark.django_db(transaction=True)

CALLERS = 8


def new_score(score_id: str, value: float, **values: Any) -> NewScore:
    return NewScore(**{"request_id": "r", "score_name": "n", **values}, score_value=value, score_id=score_id)


def test_same_id_at_once__one_row_and_every_change_counted() -> None:
    project_id = make_project().pk

    made = at_once(CALLERS, lambda n: record_score(project_id=project_id, score=new_score("mine", n), actor="").created)

    assert Counter(made) == {True: 1, False: CALLERS - 1}
    row = Score.objects.get()
    assert row.revision == CALLERS
    assert row.score_value in range(CALLERS)


def test_same_id_for_different_requests_at_once__one_wins() -> None:
    project_id = make_project().pk

    results = at_once(
        CALLERS,
        lambda n: record_score(project_id=project_id, score=new_score("mine", n, request_id=f"r{n}"), actor="").created,
    )

    assert Counter(results) == {True: 1, "score_exists": CALLERS - 1}


def test_batches_in_opposite_orders_at_once__no_deadlock_and_all_of_one_batch() -> None:
    project_id = make_project().pk
    ids = [f"s-{n:02d}" for n in range(40)]

    def store(number: int) -> int:
        order = ids if number % 2 else list(reversed(ids))
        scores = [new_score(score_id, number) for score_id in order]
        return sum(item.created for item in record_scores(project_id=project_id, scores=scores, actor=""))

    created = at_once(CALLERS, store)

    assert sorted(created) == [0] * (CALLERS - 1) + [len(ids)]
    values = set(Score.objects.values_list("score_value", flat=True))
    assert len(values) == 1
    assert Score.objects.count() == len(ids)


def test_deleting_and_scoring_at_once__each_row_is_kept_or_withdrawn() -> None:
    project_id = make_project().pk

    def call(number: int) -> None:
        if number % 2:
            delete_scores_of(project_id, ["r"])
        else:
            record_score(project_id=project_id, score=new_score("mine", number), actor="")

    results = at_once(CALLERS, call)

    assert results == [None] * CALLERS
    kept = set(Score.objects.values_list("pk", flat=True))
    withdrawn = list(CopyWithdrawal.objects.values_list("row_id", flat=True))
    assert len(kept) <= 1
    assert len(withdrawn) == len(set(withdrawn))
    assert not kept & set(withdrawn)
