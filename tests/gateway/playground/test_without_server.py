"""The playground without an ASGI server: the call makes a runtime that ends with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import Client

from core.models import Project
from core.roles import Role
from gateway.judging.judge import JudgeResult
from gateway.judging.rubric import Grade
from gateway.pipeline.internal_client import InternalAnswer
from gateway.playground.results import Result
from gateway.playground.services import PlaygroundRun, judged, with_stored_scores
from gateway.runtime.runtime import Runtime
from gateway.worker.current import on_loop
from tests.factories.core import make_key, make_staff
from tests.gateway.playground.calls import MESSAGES
from tests.gateway.spooled import spooled_entries

pytestmark = pytest.mark.django_db(transaction=True)


def post(project: Project, path: str, content: dict[str, Any]) -> Any:
    _, key = make_key(project, scopes=["manage"])
    headers = {"authorization": f"Bearer {key}", "x-project-id": str(project.pk)}
    return Client().post(f"/api/llm/{path}", json.dumps(content), content_type="application/json", headers=headers)


def test_playground__called_twice_without_a_server__answers_each_time(project: Project) -> None:
    for _ in range(2):
        response = post(project, "playground", {"model": "gpt-4o", "messages": MESSAGES})
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "model_not_found"


def test_compare__without_a_server__answers(project: Project) -> None:
    response = post(project, "playground/compare", {"compare_models": ["a", "b"], "messages": MESSAGES})
    assert [result["error"]["code"] for result in response.json()["results"]] == ["model_not_found"] * 2


def test_stream__without_a_server__comes_whole(project: Project) -> None:
    response = post(project, "playground", {"model": "gpt-4o", "messages": MESSAGES, "stream": True})
    content = b"".join(response.streaming_content)
    assert b"model_not_found" in content
    assert content.count(b"event: result") == 1


def test_playground__signed_in_staff__is_served(project: Project) -> None:
    client = Client()
    client.force_login(make_staff(Role.EDITOR, project, name="ann"))
    content = json.dumps({"model": "gpt-4o", "messages": MESSAGES})
    headers = {"x-project-id": str(project.pk)}
    response = client.post("/api/llm/playground", content, content_type="application/json", headers=headers)
    assert response.json()["error"]["code"] == "model_not_found"
    (entry,) = [
        entry
        for entry in spooled_entries(settings.SPOOL_DIR)
        if entry.record.request_id == response.headers["x-svc-request-id"]
    ]
    assert entry.record.attributes == {"actor": "user:ann"}
    assert entry.record.api_key_id == 0


def test_playground__scores_cannot_be_stored__answer_says_so(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**given: Any) -> None:
        raise OperationalError

    monkeypatch.setattr("gateway.playground.services.record_scores", refuse)
    grades = {"relevance": Grade(50, "")}
    result = Result("m", InternalAnswer("r", 1.0), JudgeResult("judge", grades))
    run = PlaygroundRun(project.pk, "key:1", "", [], {}, evaluate=True, seconds=1)

    async def work(runtime: Runtime) -> list[Result]:
        return await with_stored_scores(run, await runtime.snapshots.project(project.pk), [result])

    (result,) = on_loop(work)
    assert result.shown()["scores"] == {"relevance": 50}
    assert result.shown()["evaluation"]["error"]["code"] == "scores_not_kept"


def test_playground__judge_has_a_defect__answer_says_so(
    project: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def defective(*given: Any, **options: Any) -> JudgeResult:
        raise ZeroDivisionError(str(given[2]))

    monkeypatch.setattr("gateway.playground.services.judge_answer", defective)
    answer = InternalAnswer("r", 1.0, {"choices": [{"message": {"role": "assistant", "content": "Paris"}}]})
    run = PlaygroundRun(
        project.pk, "key:1", "", [{"role": "user", "content": "What a client asked"}], {}, evaluate=True, seconds=1
    )

    async def work(runtime: Runtime) -> Result:
        return await judged(runtime, await runtime.snapshots.project(project.pk), run, "m", answer)

    result = on_loop(work)
    assert result.shown()["evaluation"]["error"]["code"] == "internal_error"
    assert "judgement.failed request_id=r error=ZeroDivisionError" in caplog.text
    # The text of an error may quote what was asked.
    assert "What a client asked" not in caplog.text
