"""Feedback may name the request of its session whose answer it is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.signing import Signer
from django.utils import timezone
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion.again import Tombstone, erase_again, withdraw_copies
from analytics.errors import AnalyticsLimitError
from analytics.identifiers import id_hash
from analytics.models import CopyWithdrawal, Deletion, DeletionKind, Feedback, Score
from analytics.scores.feedback_tokens import HEADER
from analytics.scores.services import record_feedback
from analytics.scores.sync import requests
from analytics.scores.sync.run import copy_due
from core.models import Project
from tests.factories.analytics import make_entry, store, uuid7
from tests.factories.core import client_of, make_project
from tests.factories.scores import make_score
from tests.store_away import store_away
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

URL, TOKEN_URL = "/api/llm/sessions/s/feedback", "/api/llm/sessions/s/feedback-token"
CONFIG = str(uuid4())


def stored(spool: Path, project: Project, session_id: str = "s", **values: Any) -> str:
    """Stores a request and returns its id."""
    given = {"prompt_config_id": CONFIG, "prompt_version": 3, "session_id": session_id, **values}
    made = make_entry(project_id=str(project.pk), **given)
    store(spool, made)
    return made.record.request_id


def id_of(age: timedelta) -> str:
    """Returns an id of the gateway of so long ago, of which the store has no request."""
    return uuid7(int((timezone.now() - age).timestamp() * 1e6))


def give(api: APIClient, project: Project, request_id: Any, url: str = URL, token: str = "") -> Any:
    headers = {HEADER: token} if token else {}
    return api.post(url, {"project_id": str(project.pk), "score": 2, "request_id": request_id}, headers=headers)


def refused(answer: Any) -> list[str]:
    """Returns the fields that a refusal names."""
    assert answer.status_code == 400, answer.json()
    assert not Feedback.objects.exists()
    return list(answer.json()["error"]["details"])


def copies() -> list[tuple[Any, ...]]:
    sql = "SELECT toString(request_id), request_known, prompt_version, score FROM feedback FINAL ORDER BY ts"
    return client.execute(sql)


def look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies what is due at the next look."""
    due = Feedback.objects.get().copy_due_at
    assert due is not None
    monkeypatch.setattr(timezone, "now", lambda: due)
    assert copy_due() == 1


def test_feedback__on_a_request_of_the_session__listed_and_shown_with_it(
    api: APIClient, project: Project, spool: Path
) -> None:
    request_id, other = stored(spool, project), stored(spool, project)

    made = give(api, project, request_id)
    about_session = give(api, project, None)

    assert (made.status_code, made.json()["request_id"]) == (201, request_id)
    assert about_session.json()["request_id"] is None
    assert [item["request_id"] for item in api.get(URL).json()["results"]] == [None, request_id]
    assert api.get(URL, {"request_id": request_id}).json()["results"] == [made.json()]
    assert api.get(URL, {"request_id": other}).json()["count"] == 0
    assert api.get(f"/api/llm/requests/{request_id}").json()["feedback"] == [made.json()]
    assert api.get(f"/api/llm/requests/{other}").json()["feedback"] == []
    assert api.get("/api/llm/sessions/s").json()["feedback"][1] == made.json()


@pytest.mark.parametrize("session_id", ["t", ""])
def test_feedback__request_of_another_session_or_none__refused(
    api: APIClient, project: Project, spool: Path, session_id: str
) -> None:
    assert refused(give(api, project, stored(spool, project, session_id))) == ["request_id"]


def test_feedback__request_of_another_project__taken_for_one_on_its_way_and_never_shown(
    api: APIClient, project: Project, spool: Path
) -> None:
    """An answer that told it from an unknown id would tell what another project has."""
    theirs = make_project()
    request_id = stored(spool, theirs)

    assert give(api, project, request_id).status_code == 201
    copy_due()

    assert client_of(theirs).get(f"/api/llm/requests/{request_id}").json()["feedback"] == []
    assert [known for _, known, *_ in copies()] == [False]


@pytest.mark.parametrize(
    "request_id",
    [str(uuid4()), str(UUID(int=0)), uuid7(2**62), "x", "", 7, True, ["x"], "0" * 36],
    ids=["random", "zero", "future", "text", "empty", "number", "bool", "list", "digits"],
)
def test_feedback__what_is_no_id_of_the_gateway__refused(api: APIClient, project: Project, request_id: Any) -> None:
    assert refused(give(api, project, request_id)) == ["request_id"]
    assert list(api.post(TOKEN_URL, {"request_id": request_id}).json()["error"]["details"]) == ["request_id"]


@pytest.mark.parametrize(("age", "status"), [(timedelta(hours=47), 201), (timedelta(hours=49), 400)])
def test_feedback__request_not_in_the_store__taken_while_it_may_be_on_its_way(
    api: APIClient, project: Project, age: timedelta, status: int
) -> None:
    assert give(api, project, id_of(age)).status_code == status


@pytest.mark.parametrize(("age", "status"), [(timedelta(hours=47), 201), (timedelta(hours=49), 503)])
def test_feedback__store_away__taken_while_the_request_is_new(
    api: APIClient, project: Project, age: timedelta, status: int
) -> None:
    with store_away():
        assert give(api, project, id_of(age)).status_code == status


def test_feedback__request_stored_later__known_at_a_later_look(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make_entry(project_id=str(project.pk), session_id="s", prompt_config_id=CONFIG, prompt_version=3)
    request_id = entry.record.request_id
    give(api, project, request_id)
    assert copy_due() == 1
    assert copies() == [(request_id, False, 0, 2)]
    assert copy_due() == 0

    store(spool, entry)
    look_again(monkeypatch)

    assert copies() == [(request_id, True, 3, 2)]
    assert Feedback.objects.get().copy_due_at is None


def test_feedback__request_turns_out_to_be_another_session_s__named_no_more(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make_entry(project_id=str(project.pk), session_id="t", prompt_config_id=CONFIG, prompt_version=3)
    request_id = entry.record.request_id
    give(api, project, request_id)
    copy_due()

    store(spool, entry)
    assert api.get(f"/api/llm/requests/{request_id}").json()["feedback"] == []
    look_again(monkeypatch)

    assert copies() == [(str(UUID(int=0)), False, 0, 2)]
    (listed,) = api.get(URL).json()["results"]
    assert (listed["request_id"], listed["score"]) == (None, 2)
    assert api.get(URL, {"request_id": request_id}).json()["count"] == 0


def test_feedback__request_never_stored__given_up_after_days(
    api: APIClient, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(api, project, id_of(timedelta(0)))
    made_at = now = Feedback.objects.get().created_at
    number = 0
    while (due := Feedback.objects.get().copy_due_at) is not None:
        now, number = max(now, due), number + 1
        monkeypatch.setattr(timezone, "now", lambda moment=now: moment)
        copy_due()

    assert now - made_at > timedelta(days=2)
    assert number < 60
    assert len(copies()) == 1


def test_feedback__requests_cannot_be_looked_for__copied_without(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_id = stored(spool, project)
    give(api, project, request_id)

    def refuse(*args: Any) -> Any:
        raise AnalyticsLimitError("too much")

    with monkeypatch.context() as patch:
        patch.setattr(requests, "find_requests", refuse)
        assert copy_due() == 1
    assert copies() == [(request_id, False, 0, 2)]

    look_again(monkeypatch)
    assert copies() == [(request_id, True, 3, 2)]


def test_copies__of_rows_whose_requests_are_not_there__made_again_after_a_restore(
    api: APIClient, project: Project
) -> None:
    request_id, hour_ago = id_of(timedelta(hours=1)), timezone.now() - timedelta(hours=1)
    give(api, project, request_id)
    make_score(project, request_id=request_id)
    Feedback.objects.update(created_at=hour_ago, copy_due_at=hour_ago)
    Score.objects.update(created_at=hour_ago, updated_at=hour_ago, copy_due_at=hour_ago)
    assert copy_due() == 2
    for table in ("feedback", "scores"):
        client.execute(f"TRUNCATE TABLE {table}")

    withdraw_copies(hour_ago - timedelta(hours=1))
    assert copy_due() == 2

    assert copies() == [(request_id, False, 0, 2)]
    assert client.execute("SELECT request_id FROM scores FINAL") == [(request_id,)]


# Tokens


@pytest.fixture
def browser(project: Project) -> APIClient:
    return client_of(project, scopes=["feedback:write"])


def token_for(api: APIClient, request_id: str | None = None) -> str:
    made = api.post(TOKEN_URL, {"request_id": request_id})
    assert (made.status_code, made.json()["request_id"]) == (201, request_id)
    token: str = made.json()["token"]
    return token


def test_token__of_a_request__for_its_answer_alone(
    api: APIClient, browser: APIClient, project: Project, spool: Path
) -> None:
    request_id, other = stored(spool, project), stored(spool, project)
    token = token_for(api, request_id)

    codes = [
        give(browser, project, named, url, token).json()["error"]["code"]
        for named, url in (
            (other, URL),
            (None, URL),
            (request_id, "/api/llm/sessions/t/feedback"),
        )
    ]

    assert codes == ["feedback_token_invalid"] * 3
    assert give(browser, project, request_id, URL, token).status_code == 201
    assert give(browser, project, request_id.upper(), URL, token).status_code == 201


def test_token__of_the_session__for_each_of_its_answers(
    api: APIClient, browser: APIClient, project: Project, spool: Path
) -> None:
    token = token_for(api)

    assert give(browser, project, None, URL, token).status_code == 201
    assert give(browser, project, stored(spool, project), URL, token).status_code == 201
    other = give(browser, project, stored(spool, project, "t"), URL, token)
    assert list(other.json()["error"]["details"]) == ["request_id"]


def test_token__as_they_were_before_requests_could_be_named__is_valid(browser: APIClient, project: Project) -> None:
    expires_at = int((timezone.now() + timedelta(minutes=1)).timestamp())
    subject = f"{project.pk}:{id_hash('s')}"
    token = Signer(salt="analytics.feedback_tokens").sign(f"{subject}:{expires_at}").removeprefix(f"{subject}:")

    assert give(browser, project, None, URL, token).status_code == 201


def test_token__of_a_request_with_its_id_before_it__is_none_of_the_session(
    api: APIClient, browser: APIClient, project: Project, spool: Path
) -> None:
    request_id = stored(spool, project)
    token = f"{request_id}:{token_for(api, request_id)}"

    assert give(browser, project, None, URL, token).json()["error"]["code"] == "feedback_token_invalid"


def test_token__request_of_another_session__refused(api: APIClient, project: Project, spool: Path) -> None:
    answer = api.post(TOKEN_URL, {"request_id": stored(spool, project, "t")})

    assert (answer.status_code, list(answer.json()["error"]["details"])) == (400, ["request_id"])


# Deletion


def test_request__deleted__its_feedback_goes_and_other_stays(api: APIClient, project: Project, spool: Path) -> None:
    request_id, other = stored(spool, project), stored(spool, project)
    for named in (request_id, request_id, other, None):
        assert give(api, project, named).status_code == 201
    copy_due()

    assert api.delete(f"/api/llm/requests/{request_id}").status_code == 204
    copy_due()

    assert [item["request_id"] for item in api.get(URL).json()["results"]] == [None, other]
    assert [named for named, *_ in copies()] == [other, str(UUID(int=0))]
    assert not CopyWithdrawal.objects.exists()
    texts = str(client.execute("SELECT * FROM feedback WHERE is_deleted = 0"))
    assert other in texts and request_id not in texts


def test_request__deleted__cannot_be_named_any_more(api: APIClient, project: Project, spool: Path) -> None:
    request_id = stored(spool, project)
    assert api.delete(f"/api/llm/requests/{request_id}").status_code == 204

    assert refused(give(api, project, request_id)) == ["request_id"]


def test_request__deleted_before_its_record_is_there__its_feedback_goes(api: APIClient, project: Project) -> None:
    request_id = id_of(timedelta(minutes=1))
    give(api, project, request_id)

    assert api.delete(f"/api/llm/requests/{request_id}").status_code == 204

    assert not Feedback.objects.exists()
    assert api.delete(f"/api/llm/requests/{id_of(timedelta(minutes=1))}").status_code == 404


def test_session__deleted__its_requests_cannot_be_named_and_new_ones_can(
    api: APIClient, project: Project, spool: Path
) -> None:
    before = stored(spool, project)
    assert api.delete("/api/llm/sessions/s").status_code == 204

    assert refused(give(api, project, before)) == ["request_id"]
    assert give(api, project, stored(spool, project)).status_code == 201


def test_deletion__done_again_after_a_restore__feedback_of_the_request_goes(project: Project) -> None:
    request_id = UUID(id_of(timedelta(days=30)))
    record_feedback(project_id=project.pk, session_id="s", score=1, text="", actor="", request_id=request_id)
    tombstone = Tombstone(
        uuid4(), project.pk, DeletionKind.REQUEST, id_hash(str(request_id)), "user:x", datetime.now(UTC)
    )

    erase_again([tombstone], log=False, done=lambda count: None)

    assert not Feedback.objects.exists()
    assert Deletion.objects.filter(pk=tombstone.id).exists()


def test_edited__of_an_answer__is_enough_and_counted(api: APIClient, project: Project, spool: Path) -> None:
    request_id = stored(spool, project)
    body = {"project_id": str(project.pk), "request_id": request_id, "edited": True}

    made = api.post(URL, body)
    rated = api.post(URL, {**body, "score": 2})
    give(api, project, request_id)
    copy_due()

    assert (made.status_code, rated.status_code) == (201, 201)
    assert (made.json()["edited"], made.json()["score"], made.json()["text"]) == (True, None, "")
    shown = api.get(f"/api/llm/requests/{request_id}").json()["feedback"]
    assert [item["edited"] for item in shown] == [False, True, True]
    (day,) = api.get("/api/llm/metrics/feedback").json()["results"]
    assert (day["count"], day["edited_count"], day["text_count"], day["scores"]["2"]) == (3, 2, 0, 2)
    assert client.execute("SELECT edited FROM feedback FINAL ORDER BY ts") == [(True,), (True,), (False,)]


@tabled
def test_edited__not_of_an_answer_or_no_boolean__refused_by_name(
    api: APIClient, project: Project, values: dict[str, Any], field: str
) -> None:
    assert refused(api.post(URL, {"project_id": str(project.pk), **values})) == [field]


def test_edited__of_another_sessions_request__refused(api: APIClient, project: Project, spool: Path) -> None:
    request_id = stored(spool, project, session_id="other")

    answer = api.post(URL, {"project_id": str(project.pk), "request_id": request_id, "edited": True})

    assert refused(answer) == ["request_id"]
