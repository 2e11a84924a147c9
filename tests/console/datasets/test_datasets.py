from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analytics.models import Dataset, DatasetItem, ReviewItem
from analytics.queries.requests import get_request_time
from core.models import Project
from core.roles import Role
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import AnswerState
from tests.console.reviews.test_reviews import content_of, visitor_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.factories.datasets import item_body, make_dataset
from tests.factories.reviews import make_queue
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db
DATASETS = "/admin/datasets/"


def address_of(dataset: Dataset) -> str:
    return f"{DATASETS}{dataset.project_id}/{dataset.pk}/"


def file_of(*lines: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("items.jsonl", "\n".join(lines).encode())


@pytest.fixture
def editor(project: Project) -> Client:
    return visitor_of(project, name="ann")


@pytest.fixture
def stored(clickhouse: None, project: Project, spool: Path) -> list[str]:
    entries = [
        make_entry(
            json.dumps({"messages": [{"role": "user", "content": f"Where is <{user}>?"}]}).encode(),
            b'{"choices": [{"message": {"role": "assistant", "content": "Here."}}]}',
            project_id=str(project.pk),
            user_id=user,
            source="gateway",
        )
        for user in ("ann", "ben")
    ]
    store(spool, *entries)
    return [entry.record.request_id for entry in entries]


def test_list__empty__says_the_first_step(editor: Client) -> None:
    page = content_of(editor.get(DATASETS, follow=True))

    assert "No data set yet" in page and "Choose requests" in page
    assert "Make the data set" in page


def test_list__sets__with_their_items_and_versions_and_not_anothers(project: Project, editor: Client) -> None:
    own, other = make_dataset(project, items=2, name="Support"), make_dataset(make_project(), name="Not mine")

    page = content_of(editor.get(DATASETS, follow=True))

    assert "Support" in page and str(own.pk) in page
    assert other.name not in page


def test_list__hundred_sets__asks_no_more_than_for_one(
    project: Project, editor: Client, django_assert_max_num_queries: Any
) -> None:
    make_dataset(project, items=0)
    content_of(editor.get(DATASETS, follow=True))
    with CaptureQueriesContext(connection) as for_one:
        content_of(editor.get(DATASETS, follow=True))
    for _ in range(99):
        make_dataset(project, items=0)

    with django_assert_max_num_queries(len(for_one)):
        content_of(editor.get(DATASETS, follow=True))


def test_new__name_known__is_said_at_its_field(project: Project, editor: Client) -> None:
    known = make_dataset(project)

    answer = editor.post(DATASETS, {"name": known.name, "retention": "kept"})
    made = editor.post(DATASETS, {"name": "Another", "retention": "kept"})

    assert "There is a data set of this name" in content_of(answer)
    assert made.status_code == 302
    assert Dataset.objects.get(name="Another").retention == "kept"


def test_take__requests_of_a_filter__are_in_a_new_set(project: Project, editor: Client, stored: list[str]) -> None:
    form = content_of(editor.get(DATASETS, {"user_id": "ann", "take": "1"}, follow=True))
    assert 'value="user_id=ann"' in form and 'id="take"' in form

    taken = {"action": "take", "name": "Ann", "filter": "user_id=ann", "tags": "hard, ann", "expect_answer": "on"}
    answer = editor.post(DATASETS, {**taken, "order": "random", "limit": "5"})

    dataset = Dataset.objects.get(name="Ann")
    assert answer.headers["location"].startswith(address_of(dataset))
    item = dataset.items.get()
    assert (str(item.source_request_id), item.tags, item.expected) == (stored[0], ["ann", "hard"], "Here.")
    page = content_of(editor.get(answer.headers["location"]))
    assert "1 item is new in Ann, version 1." in page
    assert "Where is &lt;ann&gt;?" in page


def test_take__nothing_matches__no_set_is_made(editor: Client, stored: list[str]) -> None:
    answer = editor.post(DATASETS, {"action": "take", "name": "None", "filter": "user_id=eve"})

    assert "No chat completion matches" in content_of(answer)
    assert not Dataset.objects.exists()


@tabled
def test_take__wrong_field__is_named(editor: Client, values: dict[str, str], problem: str) -> None:
    answer = editor.post(DATASETS, {"action": "take", "name": "New", "filter": "", "limit": "10", **values})

    assert problem in content_of(answer)
    assert not Dataset.objects.exists()


def test_take__one_request_and_a_queue__from_their_pages(project: Project, editor: Client, stored: list[str]) -> None:
    dataset = make_dataset(project, items=0)
    queue = make_queue(project, request_ids=stored[1:])
    ReviewItem.objects.filter(queue=queue).update(state="done")
    request_page = content_of(editor.get(f"/admin/analytics/requests/{project.pk}/{stored[0]}/"))
    assert f"?request_id={stored[0]}" in request_page or f"request_id={stored[0]}" in request_page
    assert f"queue_id={queue.pk}" in content_of(editor.get(f"/admin/reviews/{project.pk}/{queue.pk}/"))

    one = editor.post(DATASETS, {"action": "take", "dataset": str(dataset.pk), "request_id": stored[0]})

    assert one.status_code == 302
    assert [str(item.source_request_id) for item in dataset.items.all()] == stored[:1]


def test_set__items__by_version_and_tag(project: Project, editor: Client) -> None:
    dataset = make_dataset(project, items=2)
    first = dataset.items.get(position=1)
    changed = editor.post(
        address_of(dataset),
        {"action": "item", "item": str(first.item_id), "expected": '{"a": 1}', "tags": "de, long prompt"},
    )

    assert changed.status_code == 302
    item = DatasetItem.objects.get(item_id=first.item_id, removed_in=None)
    assert (item.expected, item.tags) == ({"a": 1}, ["de", "long prompt"])
    assert "Answer 1" in content_of(editor.get(address_of(dataset), {"version": "1"}))
    tagged = content_of(editor.get(address_of(dataset), {"tag": "de"}))
    assert "Question 1" in tagged and "Question 2" not in tagged
    shown = content_of(editor.get(address_of(dataset), {"item": str(first.item_id)}))
    assert "Save as a new version" in shown and "long prompt" in shown


def test_set__item_removed_and_erased__is_gone_from_the_latest_or_all(project: Project, editor: Client) -> None:
    dataset = make_dataset(project, items=2)
    first, second = dataset.items.all()

    for action, item in (("remove", first), ("erase", second)):
        assert editor.post(address_of(dataset), {"action": action, "item": str(item.item_id)}).status_code == 302

    assert [row.item_id for row in dataset.items.all()] == [first.item_id]
    assert "Gone from every version: 1 erased" in content_of(editor.get(address_of(dataset)))


def test_set__file__is_added_or_its_line_named(project: Project, editor: Client) -> None:
    dataset = make_dataset(project, items=0)
    line = json.dumps(item_body("From a file"))

    wrong = editor.post(address_of(dataset), {"action": "import", "file": file_of(line, "{")})
    none = editor.post(address_of(dataset), {"action": "import"})
    right = editor.post(address_of(dataset), {"action": "import", "file": file_of(line)})

    assert "line 2: Is not JSON" in content_of(wrong)
    assert "Choose a file of JSON lines" in content_of(none)
    assert right.status_code == 302
    assert dataset.items.get().preview == "From a file"


def test_set__changed_and_deleted(project: Project, editor: Client) -> None:
    dataset = make_dataset(project)
    other = make_dataset(project)

    refused = editor.post(address_of(dataset), {"action": "change", "name": other.name, "retention": "kept"})
    changed = editor.post(address_of(dataset), {"action": "change", "name": "New name", "retention": "kept"})

    assert "There is a data set of this name" in content_of(refused)
    assert changed.status_code == 302
    dataset.refresh_from_db()
    assert (dataset.name, dataset.retention) == ("New name", "kept")
    assert editor.post(address_of(dataset), {"action": "delete"}).status_code == 302
    assert not Dataset.objects.filter(pk=dataset.pk).exists()


def test_export__of_a_version__is_a_file_of_its_lines(project: Project, editor: Client) -> None:
    dataset = make_dataset(project, items=2)

    answer: Any = editor.get(f"{address_of(dataset)}export/", {"version": "1"})

    async def collect() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    assert answer.headers["content-type"] == "application/x-ndjson"
    assert len(async_to_sync(collect)().splitlines()) == 2


def test_pages__of_readers__show_no_forms_and_texts_by_role(project: Project) -> None:
    dataset = make_dataset(project)
    reader, without = visitor_of(project, Role.READER), visitor_of(project, Role.READER_WITHOUT_CONTENT)

    assert "Question 1" in content_of(reader.get(address_of(dataset)))
    hidden = content_of(without.get(address_of(dataset), {"item": str(dataset.items.all()[0].item_id)}))

    assert "Question 1" not in hidden and "Answer 1" not in hidden
    assert without.get(f"{address_of(dataset)}export/").status_code == 403
    for client in (reader, without):
        assert "Add the items" not in content_of(client.get(address_of(dataset)))
        assert client.post(address_of(dataset), {"action": "delete"}).status_code == 403
    assert Dataset.objects.count() == 1


def make_experiment(project: Project, inputs: list[dict[str, Any]], **values: Any) -> Experiment:
    candidates = [{"label": "A", "model": "one"}, {"label": "B", "model": "two"}]
    row = Experiment.objects.create(
        project=project, name="Short or long", candidates=candidates, item_limit=len(inputs), **values
    )
    for position, fields in enumerate(inputs, start=1):
        item = ExperimentItem.objects.create(
            experiment=row, position=position, winner="B" if position == 1 else "", **fields
        )
        for index, label in enumerate("AB"):
            text = {"role": "assistant", "content": f"{label} {position}"}
            ExperimentAnswer.objects.create(item=item, candidate=index, answer=text, state=AnswerState.DONE)
    return row


def test_take__items_of_an_experiment_over_requests__expect_the_better_answer(
    project: Project, editor: Client, stored: list[str]
) -> None:
    ids = [UUID(one) for one in stored]
    inputs = [{"request_id": one, "requested_at": get_request_time(project.pk, one)} for one in ids]
    experiment = make_experiment(project, inputs)

    form = content_of(editor.get(DATASETS, {"experiment_id": str(experiment.pk)}, follow=True))
    assert "Takes all items of Short or long." in form and "The answer of B: two" in form
    taken = {"action": "take", "name": "Tried", "experiment_id": str(experiment.pk), "expected": "winner"}
    assert editor.post(DATASETS, taken).status_code == 302

    items = {str(row.source_request_id): row.expected for row in Dataset.objects.get(name="Tried").items.all()}
    assert items == {stored[0]: "B 1", stored[1]: None}


def test_take__one_item_of_an_experiment_over_a_set__copied_with_what_it_expects(
    project: Project, editor: Client
) -> None:
    first = make_dataset(project, items=2, name="First")
    rows = list(first.items.order_by("position"))
    experiment = make_experiment(
        project, [{"dataset_item_id": row.item_id} for row in rows], dataset_id=first.pk, dataset_version=1
    )
    taken = {"action": "take", "name": "Hard", "experiment_id": str(experiment.pk), "positions": "2", "tags": "worst"}

    assert editor.post(DATASETS, taken).status_code == 302
    second = Dataset.objects.get(name="Hard")
    again = editor.post(DATASETS, {**taken, "dataset": str(second.pk), "positions": "1,2", "expected": "A"})

    copies = list(second.items.order_by("position"))
    assert [(row.messages, "worst" in row.tags) for row in copies] == [(row.messages, True) for row in rows[::-1]]
    assert [row.expected for row in copies] == [rows[1].expected, "A 1"]
    assert "1 are in the set already" in content_of(editor.get(again.headers["location"]))


def test_take__experiment_whose_items_are_gone_or_anothers__says_so(project: Project, editor: Client) -> None:
    gone = make_experiment(project, [{"dataset_item_id": uuid4()}], dataset_id=uuid4(), dataset_version=1)
    others = make_experiment(make_project(), [{"dataset_item_id": uuid4()}])
    taken = {"action": "take", "name": "None"}

    assert "The items are gone" in content_of(editor.post(DATASETS, {**taken, "experiment_id": str(gone.pk)}))
    refused = content_of(editor.post(DATASETS, {**taken, "experiment_id": str(others.pk)}))
    assert "There is no such experiment." in refused
    assert not Dataset.objects.exists()
