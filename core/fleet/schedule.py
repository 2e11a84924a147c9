from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.db import IntegrityError, transaction

from core.fleet.tables import ScheduledRun

Work = TypeVar("Work", bound=Callable[..., None])
_questions: dict[Callable[..., None], Callable[[], bool]] = {}


def sent_if(question: Callable[[], bool]) -> Callable[[Work], Work]:
    """Has beat ask the database before it sends the task. A question costs less than a millisecond of CPU, a message
    some sixteen, and in most installations most tasks have nothing to do."""

    def decorate(work: Work) -> Work:
        _questions[work] = question
        return work

    return decorate


def is_due(work: Callable[..., None]) -> bool:
    question = _questions.get(work)
    return question is None or question()


def last_runs() -> dict[str, datetime]:
    return dict(ScheduledRun.objects.values_list("name", "ran_at"))


def claim_run(name: str, *, before: datetime | None, at: datetime) -> bool:
    """Claims the run of a task that last ran at `before`. Of several callers with the same `before`, one gets True.
    Raises the database's errors."""
    if before is not None:
        return bool(ScheduledRun.objects.filter(name=name, ran_at=before).update(ran_at=at))
    try:
        with transaction.atomic():
            ScheduledRun.objects.create(name=name, ran_at=at)
    except IntegrityError:
        return False
    return True
