from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rest_framework.test import APIClient

from analytics.request_log.record import AttemptRecord, Outcome
from core.models import Project
from tests.analytics.requests.entries import NOW, entry
from tests.factories.analytics import make_entry, store, uuid7
from tests.factories.core import make_project
from tests.factories.scores import make_score
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

CONFIG, ROLLOUT = str(uuid.uuid4()), str(uuid.uuid4())


def names(answer: Any) -> list[str]:
    """Returns the sessions of the listed requests, which the tests use as names."""
    assert answer.status_code == 200, answer.content
    return [item["session_id"] for item in answer.json()["results"]]


def at(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).isoformat()


_FILTERS = [
    ({}, ["a", "b", "c", "d"]),
    ({"session_id": "b"}, ["b"]),
    ({"session_id": ""}, ["a", "b", "c", "d"]),
    ({"user_id": "ann"}, ["a", "c"]),
    ({"outcome": "error"}, ["b"]),
    ({"status_code": "429"}, ["b"]),
    ({"source": "playground"}, ["c"]),
    ({"operation": "chat"}, ["a", "b"]),
    ({"operation": "messages"}, ["c"]),
    ({"operation": "embeddings", "session_id": "d"}, ["d"]),
    ({"operation": "embeddings", "user_id": "ann"}, []),
    ({"operation": "rerank"}, []),
    ({"client_request_id": "mine/1"}, ["d"]),
    ({"client_request_id": "mine"}, []),
    ({"provider": "anthropic"}, ["c"]),
    ({"deployment": "openai-eu"}, ["b"]),
    ({"deployment": "openai"}, ["a", "d"]),
    ({"deployment": "anthropic"}, ["c"]),
    ({"deployment": "openai-eu", "provider": "anthropic"}, []),
    ({"language": "ja"}, ["b"]),
    ({"model": "claude"}, ["c"]),
    ({"requested_model": "auto"}, ["d"]),
    ({"error_type": "rate_limit_error"}, ["b"]),
    ({"error_code": "requests_per_minute"}, ["b"]),
    ({"error_code": "other"}, []),
    ({"prompt_config_id": CONFIG}, ["c", "d"]),
    ({"prompt_config_id": CONFIG, "prompt_version": "2"}, ["d"]),
    ({"rollout_id": ROLLOUT}, ["d"]),
    ({"variant": "target"}, ["d"]),
    ({"start_date": at(20)}, ["a", "b"]),
    ({"end_date": at(20)}, ["b", "c", "d"]),
    ({"start_date": at(30), "end_date": at(20), "user_id": "ann"}, ["c"]),
    ({"min_latency_ms": "500"}, ["c", "d"]),
    ({"max_latency_ms": "500"}, ["a", "b", "c"]),
    ({"min_cost_usd": "0.01"}, ["c", "d"]),
    ({"min_cost_usd": "0.0100000001"}, ["d"]),
    ({"max_cost_usd": "0.01"}, ["a", "c"]),
    ({"user_id": "' OR 1=1 --"}, []),
    ({"user_id": "%"}, []),
    ({"model": "🙂\\"}, []),
]


def test_requests__filters__keep_what_matches(api: APIClient, project: Project, spool: Path) -> None:
    limited: dict[str, Any] = {"error_type": "rate_limit_error", "error_code": "requests_per_minute"}
    configured: dict[str, Any] = {"prompt_config_id": CONFIG, "prompt_version": 1, "latency_ms": 500}
    unpriced: dict[str, Any] = {**limited, "cost_known": False, "cost_usd": ""}
    target = configured | {"prompt_version": 2, "rollout_id": ROLLOUT, "variant": "target", "latency_ms": 600}
    store(
        spool,
        entry(project, minutes_ago=10, session_id="a", user_id="ann"),
        entry(
            project, minutes_ago=20, session_id="b", outcome=Outcome.ERROR, status_code=429, **unpriced,
            attempts=(AttemptRecord("openai", "m"), AttemptRecord("openai", "m", deployment="openai-eu")),
            language="ja",
        ),
        entry(
            project, minutes_ago=30, session_id="c", user_id="ann", source="playground", provider="anthropic",
            model="claude", cost_usd="0.01", operation="messages", is_native=True, **configured,
        ),
        entry(
            project, minutes_ago=40, session_id="d", requested_model="auto", cost_usd="0.02", operation="embeddings",
            attributes={"client_request_id": "mine/1"}, **target,
        ),
        entry(make_project(), minutes_ago=50, session_id="theirs"),
    )  # fmt: skip

    for parameters, expected in _FILTERS:
        answer = api.get("/api/llm/requests", parameters)

        assert names(answer) == expected, parameters
        assert answer.json()["count"] == len(expected), parameters


def test_requests__pages__cover_all_once_newest_first(api: APIClient, project: Project, spool: Path) -> None:
    """Pages of the older half are read from the other end."""
    # Some requests have the same time, so that the order needs the id.
    store(spool, *(entry(project, minutes_ago=i // 3, session_id=f"s{i}") for i in range(23)))

    for limit in [1, 4, 5, 1000]:
        whole = names(api.get("/api/llm/requests", {"limit": 1000}))
        paged = [
            name
            for offset in range(0, 30, limit)
            for name in names(api.get("/api/llm/requests", {"limit": limit, "offset": offset}))
        ]

        assert sorted(whole) == sorted(f"s{i}" for i in range(23)), limit
        assert [int(name[1:]) // 3 for name in whole] == sorted(int(name[1:]) // 3 for name in whole), limit
        assert paged == whole, limit
        beyond = api.get("/api/llm/requests", {"offset": 2**62}).json()
        assert (beyond["count"], beyond["results"]) == (23, []), limit


@tabled
@pytest.mark.parametrize("path", ["/api/llm/requests", "/api/llm/requests/export"])
def test_requests__bad_parameter__400_naming_it(
    api: APIClient, path: str, parameters: dict[str, str], field: str
) -> None:
    answer = api.get(path, parameters)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["details"]


def test_request__logged__shows_everything(api: APIClient, project: Project, spool: Path) -> None:
    attempts = (AttemptRecord("openai", "gpt-4o", 500, "upstream_error", 90), AttemptRecord("anthropic", "claude", 200))
    given = entry(
        project,
        "Ist das ü?",
        "Ja 🙂",
        session_id="s/1",
        attempts=attempts,
        ttft_ms=12,
        operation="responses",
        is_native=True,
    )
    content = [{"type": "output_text", "text": "Ja 🙂", "annotations": []}]
    response = {"id": "resp_1", "created_at": 1, "model": "gpt-4o", "output": [{"type": "message", "content": content}]}
    given = msgspec.structs.replace(given, response=msgspec.json.encode(response))
    store(spool, given)
    make_score(project, request_id=given.record.request_id, score_name="relevance")
    make_score(make_project(), request_id=given.record.request_id, score_name="theirs")

    answer = api.get(f"/api/llm/requests/{given.record.request_id}")

    assert answer.status_code == 200
    shown = answer.json()
    assert [score["score_name"] for score in shown["scores"]] == ["relevance"]
    assert shown["request_id"] == given.record.request_id
    assert shown["session_id"] == "s/1"
    assert shown["content_logged"] is True
    assert shown["request"] == {"messages": [{"role": "user", "content": "Ist das ü?"}]}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Ja 🙂"}, "finish_reason": "stop"}
    assert shown["response"]["choices"] == [choice]
    assert [attempt["provider"] for attempt in shown["attempts"]] == ["openai", "anthropic"]
    assert shown["ttft_ms"] == 12
    assert (shown["operation"], shown["native"]) == ("responses", True)
    assert shown["cost_usd"] == 0.0000048


def test_request__content_not_logged__says_so(api: APIClient, project: Project, spool: Path) -> None:
    given = make_entry(project_id=str(project.pk))
    store(spool, given)

    shown = api.get(f"/api/llm/requests/{given.record.request_id}").json()

    assert (shown["content_logged"], shown["request"], shown["response"]) == (False, None, None)


_ODD_BODIES = [
    (b'{"a": NaN}', {"a": "NaN"}),
    (b'{"a": "\\ud800"}', '{"a": "\\ud800"}'),
    (b"no json \xff", "no json \ufffd"),
    (b'{"a": ' + b"9" * 5000 + b"}", '{"a": ' + "9" * 5000 + "}"),
    (b"[" * 5_000, "[" * 5_000),
    (b'{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    (b"null", None),
]


def test_request__odd_body__is_shown_as_far_as_it_goes(api: APIClient, project: Project, spool: Path) -> None:
    given = [make_entry(request=body, project_id=str(project.pk)) for body, _ in _ODD_BODIES]
    store(spool, *given)

    for made, (body, shown) in zip(given, _ODD_BODIES, strict=True):
        answer = api.get(f"/api/llm/requests/{made.record.request_id}")

        assert answer.status_code == 200, body
        assert answer.json()["request"] == shown, body


@pytest.mark.parametrize(
    "request_id",
    [uuid7(1_600_000_000_000_000), "01890000-0000-4000-8000-000000000001", "ffffffff-ffff-7fff-bfff-ffffffffffff"],
    ids=["made by a clock that was set", "without a time", "of the year 10889"],
)
def test_request__whose_id_names_another_time__is_found(
    api: APIClient, project: Project, spool: Path, request_id: str
) -> None:
    store(spool, entry(project, request_id=request_id, session_id="theirs"), entry(project, session_id="other"))

    answer = api.get(f"/api/llm/requests/{request_id}")

    assert (answer.status_code, answer.json()["session_id"]) == (200, "theirs")
