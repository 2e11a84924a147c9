"""Files of JSON lines: what an export writes an import takes, and a file that is wrong anywhere adds nothing."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from analytics.datasets.items import ROLES
from analytics.models import Dataset
from core.models import Project
from tests.analytics.datasets.test_datasets_api import path_of
from tests.factories.datasets import item_body, make_dataset
from tests.night import examples

pytestmark = pytest.mark.django_db

_TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40)
# PostgreSQL writes larger ones without an exponent, which Python reads as whole numbers.
_FRACTIONS = st.floats(-1e15, 1e15)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _FRACTIONS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_TEXTS, _JSON, max_size=3)
_ITEMS = st.fixed_dictionaries(
    {
        "messages": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(ROLES), "content": _TEXTS}), min_size=1, max_size=3
        )
    },
    optional={
        "variables": _OBJECTS,
        "expected": _JSON,
        "parameters": st.dictionaries(st.sampled_from(["model", "tools", "response_format"]), _JSON),
        "tags": st.lists(st.sampled_from(["de", "DE", "long prompt", "a,b", "%"]), max_size=3),
        "source_request_id": st.uuids().map(str),
    },
)


def lines_of(*items: Any) -> bytes:
    return b"".join(json.dumps(item, ensure_ascii=False).encode() + b"\n" for item in items)


def take(api: APIClient, dataset: Dataset, body: bytes) -> Any:
    return api.post(path_of(dataset, "import"), body, content_type="application/x-ndjson")


def exported(api: APIClient, dataset: Dataset, **query: Any) -> bytes:
    answer: Any = api.get(path_of(dataset, "export"), query)
    assert answer.status_code == 200, answer.content
    return content_of(answer)


def content_of(answer: Any) -> bytes:
    async def collect() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    return async_to_sync(collect)()


def without_ids(lines: bytes) -> list[dict[str, Any]]:
    return [{**json.loads(line), "id": None} for line in lines.splitlines()]


@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(6, 25)
)
@given(items=st.lists(_ITEMS, min_size=1, max_size=4))
def test_file__exported_and_imported__has_the_same_items(
    api: APIClient, project: Project, items: list[dict[str, Any]]
) -> None:
    first, second = make_dataset(project, items=0), make_dataset(project, items=0)
    assert take(api, first, lines_of(*items)).status_code == 201

    written = exported(api, first)

    assert take(api, second, written).status_code == 201
    assert without_ids(exported(api, second)) == without_ids(written)
    for item, shown in zip(items, without_ids(written), strict=True):
        assert {name: shown[name] for name in item if name != "tags"} == {
            name: value for name, value in item.items() if name != "tags"
        }
        assert shown["tags"] == sorted(set(item.get("tags", [])))
    first.delete()
    second.delete()


def test_export__of_a_version__has_its_items(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project, items=1)
    take(api, dataset, lines_of(item_body("Second")))

    answer = api.get(path_of(dataset, "export"), {"version": 1})

    assert answer.headers["content-type"] == "application/x-ndjson"
    assert f"dataset-{dataset.pk}-version-1.ndjson" in answer.headers["content-disposition"]
    assert [one["messages"][0]["content"] for one in without_ids(content_of(answer))] == ["Question 1"]
    assert len(exported(api, dataset).splitlines()) == 2
    assert api.get(path_of(dataset, "export"), {"version": 3}).status_code == 400


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b'{"messages": [{"role": "user"', "line 3: Is not JSON"),
        (b"nonsense", "line 3: Is not JSON"),
        (b"[]", "line 3: Must be a JSON object"),
        (b'{"messages": []}', "line 3.messages: "),
        (b'{"messages": [{"role": "user", "content": "a\\u0000"}]}', "line 3.messages.0.content: "),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "line 3.messages.0.content: "),
        (b'{"messages": [], "expected": NaN}', "line 3: Has a number"),
        (b'{"messages": [{"role": "user", "content": "a"}], "expected": 1e999}', "line 3.expected: "),
        (
            b'{"messages": [{"role": "user", "content": "a"}], "expected": ' + b"9" * 5_000 + b"}",
            "line 3: Has a number",
        ),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}', "line 3: Is not text in UTF-8"),
        (b'{"messages": [{"role": "user", "content": "a"}], "expected": ' + b"[" * 70 + b"]" * 70 + b"}", "nested"),
        (b"[" * 100_000, "line 3: Is nested too deeply"),
        (b'{"messages": [{"role": "user", "content": "a"}], "answer": "b"}', "line 3.answer: There is no such field"),
        (lines_of(item_body("x" * 262_144)).strip(), "line 3: The item is larger"),
        (b" " * 1_600_000, "line 3: The line is longer"),
    ],
)
def test_import__a_line_is_wrong__nothing_is_added_and_the_line_is_named(
    api: APIClient, project: Project, line: bytes, named: str
) -> None:
    dataset = make_dataset(project, items=0)
    body = lines_of(item_body("First")) + b"\n" + line + b"\n" + lines_of(item_body("Last"))

    answer = take(api, dataset, body)

    assert answer.status_code == 400, answer.content
    assert named in answer.json()["error"]["message"]
    assert answer.json()["error"]["code"] == "invalid_dataset_item"
    dataset.refresh_from_db()
    assert (dataset.version, dataset.items.count()) == (0, 0)


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 400), (b"\n \r\n", 400), (b"\xef\xbb\xbf" + lines_of(item_body()), 201)]
)
def test_import__empty_or_with_a_byte_order_mark__is_said_or_taken(
    api: APIClient, project: Project, body: bytes, status: int
) -> None:
    assert take(api, make_dataset(project, items=0), body).status_code == status


def test_import__another_type_of_body__415(api: APIClient, project: Project) -> None:
    answer = api.post(path_of(make_dataset(project), "import"), item_body(), format="json")

    assert answer.status_code == 415


def test_import__ten_thousand_lines__are_one_version_and_one_more_is_refused(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project, items=0)
    lines = lines_of(*(item_body(f"Question {place}", source_request_id=str(uuid4())) for place in range(10_000)))

    refused = take(api, dataset, lines + lines_of(item_body()))
    added = take(api, dataset, lines)

    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "line 10001: A file has at most 10,000 items."
    assert added.json()["added"] == added.json()["dataset"]["item_count"] == 10_000
    assert added.json()["dataset"]["version"] == 1
    assert len(exported(api, dataset).splitlines()) == 10_000
    full = take(api, dataset, lines_of(item_body()))
    assert (full.status_code, full.json()["error"]["code"]) == (409, "dataset_full")


def test_import__only_new__leaves_out_what_the_set_has(api: APIClient, project: Project) -> None:
    dataset = make_dataset(project, items=0)
    lines = [item_body(), {**item_body(), "expected": "An answer"}, item_body()]
    text = "\n".join(map(json.dumps, lines))

    def send() -> Any:
        return api.post(f"{path_of(dataset, 'import')}?only_new=true", text, content_type="application/x-ndjson").json()

    first, again = send(), send()

    assert (first["added"], first["left_out"]["already_there"], first["dataset"]["version"]) == (2, 1, 1)
    assert (again["added"], again["left_out"]["already_there"], again["dataset"]["version"]) == (0, 3, 1)
