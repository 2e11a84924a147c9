"""Items go with their requests: when those are deleted, and when the project's retention is over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.datasets.erasure import delete_items_before
from analytics.datasets.items import read_item
from analytics.datasets.services import add_items
from analytics.datasets.signals import GoneItems, Reason, items_gone
from analytics.deletion.again import Tombstone, erase_again
from analytics.deletion.services import finish_due
from analytics.identifiers import id_hash
from analytics.models import Dataset, DatasetItem
from core.models import Project
from tests.analytics.datasets.test_datasets_api import path_of, texts_of
from tests.analytics.datasets.test_sources import add, entry
from tests.factories.analytics import store, uuid7
from tests.factories.datasets import item_body, make_dataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def gone() -> Iterator[list[GoneItems]]:
    """What the signal has said."""
    heard: list[GoneItems] = []

    def hear(*, gone: GoneItems, **_: object) -> None:
        heard.append(gone)

    items_gone.connect(hear)
    yield heard
    items_gone.disconnect(hear)


def add_one(dataset: Dataset, text: str, request_id: str) -> DatasetItem:
    item = read_item(item_body(text, source_request_id=request_id))
    add_items(project_id=dataset.project_id, dataset_id=dataset.pk, items=[item], actor="user:maker")
    return dataset.items.get(request_hash=id_hash(request_id))


@pytest.mark.usefixtures("clickhouse")
def test_session__deleted__its_items_are_in_no_version_at_once(
    api: APIClient, project: Project, spool: Path, gone: list[GoneItems]
) -> None:
    store(spool, *(entry(project, f"Mine {place}", session_id="mine") for place in range(2)), entry(project, "Other"))
    dataset, kept = make_dataset(project, items=1), make_dataset(project, items=0, retention="kept")
    assert add(api, dataset).json()["added"] == add(api, kept).json()["added"] == 3
    item = next(one for one in api.get(path_of(dataset, "items")).json()["results"] if one["preview"] == "Mine 0")
    assert api.patch(path_of(dataset, "items", item["id"]), {"tags": ["x"]}, format="json").status_code == 200

    assert api.delete("/api/llm/sessions/mine").status_code == 204

    assert [texts_of(api, dataset, version=version) for version in (2, 3)] == [["Question 1", "Other"]] * 2
    assert texts_of(api, kept) == ["Other"]
    body = api.get(path_of(dataset)).json()
    assert (body["version"], body["item_count"], body["erased_items"], body["expired_items"]) == (3, 2, 2, 0)
    assert {(one.dataset_id, len(one.item_ids), one.reason) for one in gone} == {
        (dataset.pk, 2, Reason.ERASED),
        (kept.pk, 2, Reason.ERASED),
    }
    assert item["id"] in {str(item_id) for one in gone for item_id in one.item_ids}


@pytest.mark.usefixtures("clickhouse")
def test_session__that_the_log_does_not_have_any_more__is_deleted_by_its_items(
    api: APIClient, project: Project, spool: Path
) -> None:
    store(spool, entry(project, "Mine", session_id="mine"))
    dataset = make_dataset(project, items=0, retention="kept")
    assert add(api, dataset).json()["added"] == 1
    client.execute("TRUNCATE TABLE requests", {})

    assert api.delete("/api/llm/sessions/mine").status_code == 204
    assert texts_of(api, dataset) == []
    finish_due()
    assert api.delete("/api/llm/sessions/mine").status_code == 404


@pytest.mark.usefixtures("clickhouse")
def test_request__deleted__its_items_go_with_it(api: APIClient, project: Project, spool: Path) -> None:
    stored = entry(project, "Mine")
    store(spool, stored)
    dataset = make_dataset(project, items=0)
    assert add(api, dataset).json()["added"] == 1
    # An item of the same request that was imported, of which the log knows nothing.
    add_one(make_dataset(project, items=0), "Imported", stored.record.request_id)

    assert api.delete(f"/api/llm/requests/{stored.record.request_id}").status_code == 204

    assert not DatasetItem.objects.exists()


@pytest.mark.usefixtures("clickhouse")
def test_request__made_an_item_while_it_was_erased__goes_with_the_next_look(
    api: APIClient, project: Project, spool: Path
) -> None:
    stored = entry(project, "Mine")
    store(spool, stored)
    assert api.delete(f"/api/llm/requests/{stored.record.request_id}").status_code == 204
    late = make_dataset(project, items=0)
    add_one(late, "Late", stored.record.request_id)

    finish_due(timezone.now() + timedelta(hours=1))

    assert not late.items.exists()


@pytest.mark.usefixtures("clickhouse")
def test_restored__deleted_before__items_are_erased_again(project: Project) -> None:
    request_id = str(uuid4())
    dataset = make_dataset(project, items=1)
    add_one(dataset, "Restored", request_id)
    tombstone = Tombstone(uuid4(), project.pk, "request", id_hash(request_id), "user:ann", timezone.now())

    erase_again([tombstone], log=False, done=lambda count: None)

    dataset.refresh_from_db()
    assert (dataset.items.count(), dataset.item_count, dataset.erased_items) == (1, 1, 1)


def test_retention__over__items_go_unless_the_set_is_kept(project: Project, gone: list[GoneItems]) -> None:
    old = uuid7(int(datetime(2026, 1, 5, tzinfo=UTC).timestamp() * 1e6))
    passing, kept = make_dataset(project, items=1), make_dataset(project, items=1, retention="kept")
    item = add_one(passing, "Old", old)
    add_one(kept, "Old", old)

    assert delete_items_before(project.pk, datetime(2026, 1, 6, tzinfo=UTC)) == 1

    passing.refresh_from_db()
    assert (passing.item_count, passing.expired_items, passing.erased_items) == (1, 1, 0)
    assert kept.items.count() == 2
    assert gone == [GoneItems(project.pk, passing.pk, frozenset({item.item_id}), Reason.EXPIRED)]
    assert delete_items_before(project.pk, datetime(2026, 1, 6, tzinfo=UTC)) == 0


def test_retention__id_with_a_time_to_come__counts_from_now(project: Project) -> None:
    dataset = make_dataset(project, items=0)
    item = add_one(dataset, "Made up", uuid7(int(datetime(2090, 1, 1, tzinfo=UTC).timestamp() * 1e6)))

    assert item.retained_from <= timezone.now()
