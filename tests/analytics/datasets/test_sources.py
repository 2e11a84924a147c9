"""Items of the request log: by a filter, by ids, and of a review queue."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from rest_framework.test import APIClient

from analytics.models import Dataset, ReviewItem
from analytics.models.reviews import ItemState
from analytics.request_log.record import SpoolEntry
from core.models import Project
from tests.analytics.datasets.test_datasets_api import path_of, texts_of
from tests.factories.analytics import make_entry, store
from tests.factories.datasets import make_dataset
from tests.factories.reviews import make_queue
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]
CONFIG = UUID("11111111-1111-4111-8111-111111111111")


def entry(project: Project, text: str = "Hello", *, body: Any = None, **values: Any) -> SpoolEntry:
    """Returns a request of a client with the body that it sent."""
    sent = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}], "user": "ann", "stream": True}
    request = json.dumps(sent if body is None else body).encode()
    answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": f"{text}!"}}]}).encode()
    given = {"source": "gateway", "operation": "chat", **values}
    return make_entry(request, answer, project_id=str(project.pk), **given)


def add(api: APIClient, dataset: Dataset, **body: Any) -> Any:
    return api.post(path_of(dataset, "items", "from-requests"), body, format="json")


def test_filter__matches__become_items_once_with_what_an_experiment_needs(
    api: APIClient, project: Project, spool: Path
) -> None:
    body = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Part"}]}],
        "tools": [{"type": "function", "function": {"name": "find"}}],
        "temperature": 0.2,
        "prompt_config": "support",
        "prompt_variables": {"name": "Ann"},
        "user": "ann",
    }
    named = entry(project, "Part", body=body, user_id="ann", prompt_config_id=str(CONFIG), prompt_version=3)
    store(spool, named, entry(project, "Other", user_id="ben"), entry(project, "Judge", user_id="ann", source="judge"))
    dataset = make_dataset(project, items=0)

    first = add(api, dataset, filter={"user_id": "ann"}, tags=["new"], expect_answer=True)
    again = add(api, dataset, filter={"user_id": "ann"})

    assert first.status_code == 201, first.content
    assert first.json()["added"] == 1 and first.json()["dataset"]["version"] == 1
    assert again.json()["added"] == 0 and again.json()["left_out"]["already_there"] == 1
    assert again.json()["dataset"]["version"] == 1
    item = api.get(path_of(dataset, "items")).json()["results"][0]
    assert item["messages"] == body["messages"] and item["variables"] == {"name": "Ann"}
    assert item["parameters"] == {"model": "gpt-4o", "tools": body["tools"], "temperature": 0.2}
    assert (item["expected"], item["tags"], item["preview"]) == ("Part!", ["new"], "Part")
    assert item["source_request_id"] == named.record.request_id
    assert (item["prompt_config_id"], item["prompt_version"]) == (str(CONFIG), 3)


def test_filter__random_order__is_the_same_sample_each_time(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, *(entry(project, f"Text {place:02}") for place in range(20)))
    sets = [make_dataset(project, items=0) for _ in range(3)]

    for dataset, order in zip(sets, ("random", "random", "newest"), strict=True):
        assert add(api, dataset, order=order, limit=5).json()["added"] == 5

    random, same, newest = (texts_of(api, dataset) for dataset in sets)
    assert random == same
    assert newest == [f"Text {place}" for place in (19, 18, 17, 16, 15)]


def test_filter__requests_that_cannot_be_items__are_counted_by_their_reason(
    api: APIClient, project: Project, spool: Path
) -> None:
    entries = [
        entry(project, "Good"),
        entry(project, "Large", body={"messages": [{"role": "user", "content": "x" * 300_000}]}),
        entry(project, "Robot", body={"messages": [{"role": "robot", "content": "Hello"}]}),
        make_entry(b"{torn", b"", project_id=str(project.pk), source="gateway"),
        make_entry(b"", b"", project_id=str(project.pk), source="gateway"),
    ]
    store(spool, *entries)
    dataset = make_dataset(project, items=0)

    answer = add(api, dataset, request_ids=[one.record.request_id for one in entries]).json()

    assert answer["added"] == 1
    assert answer["left_out"] == {"already_there": 0, "no_text": 1, "too_large": 1, "unreadable": 2}
    assert add(api, dataset).json()["left_out"]["already_there"] == 1


def test_filter__texts_with_characters_that_no_database_takes__are_stored_without(
    api: APIClient, project: Project, spool: Path
) -> None:
    body = {"messages": [{"role": "user", "content": "a\x00b\ud800c"}]}
    store(spool, entry(project, "Odd", body=body))
    dataset = make_dataset(project, items=0)

    assert add(api, dataset).json()["added"] == 1
    assert texts_of(api, dataset) == ["a\ufffdb\ufffdc"]


def test_filter__texts_are_not_stored__is_said(api: APIClient, project: Project, spool: Path) -> None:
    silent = make_entry(b"", b"", project_id=str(project.pk), source="gateway")
    store(spool, silent)
    dataset = make_dataset(project, items=0)

    answers = [add(api, dataset), add(api, dataset, request_ids=[silent.record.request_id])]

    assert [(one.status_code, one.json()["error"]["code"]) for one in answers] == [(400, "texts_not_stored")] * 2
    assert "log_content" in answers[0].json()["error"]["message"]


@tabled
def test_requests__bad_body__400_naming_the_field(
    api: APIClient, project: Project, body: dict[str, Any], field: str
) -> None:
    answer = add(api, make_dataset(project), **body)

    assert answer.status_code == 400, answer.content
    assert field in answer.json()["error"]["message"]


def test_request__by_id__is_an_item_and_another_projects_is_not(api: APIClient, project: Project, spool: Path) -> None:
    own, others = entry(project, "Own"), make_entry(b"{}", b"", project_id=str(uuid4()))
    store(spool, own, others)
    dataset = make_dataset(project, items=0)

    assert add(api, dataset, request_ids=[own.record.request_id, others.record.request_id]).json()["added"] == 1
    assert add(api, dataset, request_ids=[others.record.request_id]).json()["error"]["code"] == "no_request_matches"
    assert texts_of(api, dataset) == ["Own"]


def test_review__items_that_were_scored__become_items(api: APIClient, project: Project, spool: Path) -> None:
    entries = [entry(project, f"Text {place}") for place in range(3)]
    store(spool, *entries)
    queue = make_queue(project, request_ids=[one.record.request_id for one in entries])
    for place, one in enumerate(entries, 1):
        made_at = datetime.fromtimestamp(one.record.ts / 1e6, UTC)
        ReviewItem.objects.filter(queue=queue, position=place).update(ts=made_at)
    ReviewItem.objects.filter(queue=queue, position=2).update(state=ItemState.DONE)
    dataset = make_dataset(project, items=0)
    address = path_of(dataset, "items", "from-review")

    scored = api.post(address, {"queue_id": str(queue.pk)}, format="json")
    all_states = api.post(address, {"queue_id": str(queue.pk), "states": ["open", "done", "skipped"]}, format="json")

    assert scored.status_code == 201, scored.content
    assert scored.json()["added"] == 1 and all_states.json()["added"] == 2
    assert texts_of(api, dataset) == ["Text 1", "Text 0", "Text 2"]
    unknown = api.post(address, {"queue_id": str(uuid4())}, format="json")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "review_queue_not_found")
    none = api.post(address, {"queue_id": str(queue.pk), "states": ["skipped"]}, format="json")
    assert (none.status_code, none.json()["error"]["code"]) == (400, "no_request_matches")
