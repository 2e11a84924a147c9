from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from core.keys import last_use
from core.keys.last_use import FLUSH_SECONDS, LastUses
from core.models import ApiKey, Project
from tests.factories.core import make_key

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def used_at(key: ApiKey) -> datetime | None:
    key.refresh_from_db()
    return key.last_used_at


def test_flush__many_keys__one_update_with_each_its_time(project: Project, django_assert_num_queries: Any) -> None:
    uses = LastUses()
    keys = [make_key(project)[0] for _ in range(3)]
    for minute, key in enumerate(keys):
        uses.note(key.pk, NOON + timedelta(minutes=minute))

    with django_assert_num_queries(1):
        assert uses.flush() == 3

    assert [used_at(key) for key in keys] == [NOON + timedelta(minutes=minute) for minute in range(3)]


def test_flush__nothing_noted__no_query(db: None, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert LastUses().flush() == 0


def test_note__earlier_after_later__later_stays(project: Project) -> None:
    uses, (key, _) = LastUses(), make_key(project)
    uses.note(key.pk, NOON)
    uses.note(key.pk, NOON - timedelta(hours=1))
    uses.flush()
    assert used_at(key) == NOON


def test_flush__row_is_later_already__not_moved_back(project: Project) -> None:
    key, _ = make_key(project)
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=NOON + timedelta(hours=1))
    uses = LastUses()
    uses.note(key.pk, NOON)
    uses.flush()
    assert used_at(key) == NOON + timedelta(hours=1)


def test_flush__deleted_key__ignored(project: Project) -> None:
    uses, (key, _) = LastUses(), make_key(project)
    uses.note(key.pk, NOON)
    key.delete()
    assert uses.flush() == 1


def test_flush_when_due__within_a_minute__waits(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("core.keys.last_use.time.monotonic", lambda: now)
    uses, (key, _) = LastUses(), make_key(project)
    uses.note(key.pk, NOON)
    assert uses.flush_when_due() == 1
    uses.note(key.pk, NOON + timedelta(seconds=1))
    now += FLUSH_SECONDS - 1
    assert uses.flush_when_due() == 0
    now += 1
    assert uses.flush_when_due() == 1
    assert used_at(key) == NOON + timedelta(seconds=1)


def test_flush__database_away__kept_for_the_next(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    uses, (key, _) = LastUses(), make_key(project)
    uses.note(key.pk, NOON)

    def refuse(noted: object) -> None:
        raise OperationalError("gone")

    with monkeypatch.context() as broken:
        broken.setattr(last_use, "_write", refuse)
        assert uses.flush() == 0

    assert uses.flush() == 1
    assert used_at(key) == NOON
