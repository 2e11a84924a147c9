"""Any input gets a documented error or the right answer, never a 500 or another project's row."""

from __future__ import annotations

import string
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from analytics.models import Feedback, Score
from analytics.scores.services import record_feedback
from core.models import Project
from tests.factories.core import make_project
from tests.factories.scores import make_score
from tests.night import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

_ONE_DATABASE = settings(
    max_examples=examples(15, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_NASTY = st.sampled_from(
    [
        "", " ", "%", "_", "\\", "\\%", "'", '"', "' OR 1=1 --", "{project:UUID}", "\x00", "a\x00b", "\ud800", "\t\n",
        "ü😀", "NULL", "\\N", "x" * 2000, "-1", "NaN", "2026-02-30", "9999-12-31", "0001-01-01",
        "2026-01-01T00:00:00+99:99", str(2**63), str(-(2**63)), str(2**64), "1e400",
    ]
)  # fmt: skip
_TEXT = _NASTY | st.text(max_size=20)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters, max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_FIELDS = [
    "request_id", "score_name", "score_value", "score_type", "score_label", "reason", "evaluator_type", "score_id",
]  # fmt: skip
_SCORE = st.dictionaries(st.sampled_from(_FIELDS), _VALUE, max_size=8)
_LIKELY: dict[str, Any] = {"request_id": "r", "score_name": "n", "score_value": 1}


def storable(value: Any) -> bool:
    return "\\ud800" not in ascii(value)


@_ONE_DATABASE
@given(_SCORE, st.booleans())
def test_post_score__anything__stored_as_sent_or_refused(
    api: APIClient, project: Project, fields: dict[str, Any], complete: bool
) -> None:
    body = {"project_id": str(project.pk), **(_LIKELY if complete else {}), **fields}

    answer = api.post("/api/llm/scores", body) if storable(body) else api.post("/api/llm/scores", {})

    assert answer.status_code in (200, 201, 400, 409), answer.content
    if answer.status_code == 400:
        assert answer.json()["error"]["type"] == "invalid_request_error"
    if answer.status_code == 201:
        assert Score.objects.get(pk=answer.json()["id"]).score_value == float(body["score_value"])


@_ONE_DATABASE
@given(st.lists(_SCORE | _VALUE, max_size=4) | _VALUE)
def test_post_batch__anything__all_or_none(api: APIClient, project: Project, items: Any) -> None:
    if not storable(items):
        return
    if isinstance(items, list):
        items = [{**_LIKELY, **item} if isinstance(item, dict) else item for item in items]
    before = Score.objects.count()

    answer = api.post("/api/llm/scores/batch", {"project_id": str(project.pk), "scores": items})

    assert answer.status_code in (201, 400, 409), answer.content
    stored = Score.objects.count() - before
    assert stored == (answer.json()["created"] if answer.status_code == 201 else 0)


@_ONE_DATABASE
@given(_VALUE, _VALUE, _TEXT.filter(bool))
def test_post_feedback__anything__stored_or_refused(
    api: APIClient, project: Project, score: Any, text: Any, session_id: str
) -> None:
    if not storable([score, text, session_id]):
        return
    path = f"/api/llm/sessions/{quote(session_id, safe='')}/feedback"
    before = Feedback.objects.count()

    answer = api.post(path, {"project_id": str(project.pk), "score": score, "text": text})

    # No view has a path with a line break.
    assert answer.status_code in (201, 400) or ("\n" in session_id and answer.status_code == 404), answer.content
    assert Feedback.objects.count() - before == (answer.status_code == 201)
    if answer.status_code == 201:
        assert api.get(path).json()["results"][0]["session_id"] == session_id


@_ONE_DATABASE
@given(
    st.sampled_from(["scores", "metrics/scores", "metrics/feedback", "sessions/s/feedback", "scores/request/r-1"]),
    st.dictionaries(
        st.sampled_from(
            ["score_name", "score_type", "evaluator_type", "request_id", "start_date", "end_date", "limit", "offset",
             "group_by"]
        ),
        _TEXT,
        max_size=4,
    ),
)  # fmt: skip
def test_lists__any_parameters__right_answer_or_400(api: APIClient, path: str, parameters: dict[str, str]) -> None:
    if not Score.objects.exists():
        other = make_project()
        make_score(other)
        record_feedback(project_id=other.pk, session_id="s", score=1, text="theirs", actor="")
    if not storable(parameters):
        return

    answer = api.get(f"/api/llm/{path}", parameters)

    assert answer.status_code in (200, 400), answer.content
    if answer.status_code == 200:
        assert answer.json()["results"] == []
    else:
        assert set(answer.json()["error"]["details"]) & {*parameters}
