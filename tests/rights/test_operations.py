from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from agent.tools.registry import ALL
from agent.turn.admission import read_call
from core.api.authentication import ProjectAccess
from core.errors import ApplicationError
from core.models import Membership, Project
from core.rights.asking import rights_in
from core.rights.table import OPERATIONS, TOOLS
from core.roles import PROJECT_RIGHTS, Right, Role
from gateway.prompt_fetch.endpoint import project_of_session
from tests.factories.core import make_key, make_staff
from tests.night import cases
from tests.openapi.routes import Operation, channels_paths, operations
from tests.openapi.test_successes import ask
from tests.rights.conftest import PEOPLE, Populated, opened_below, person, signed_in

# No rollback of a transaction restores what these operations delete.
_FOR_GOOD = {"deleteSession", "deleteRequest", "deleteUser"}
# A path that names a row by an id. Others name what each project has, such as a provider, a model or a label.
_ROW = re.compile(r"{\w*_id}")
# Clients choose the ids of sessions and of requests that are scored, so that each project may have one of that name.
_OF_CLIENTS = {
    "listRequestScores",
    "listSessionFeedback",
    "addSessionFeedback",
    "createFeedbackToken",
    "sessionTelemetry",
    "sessionTimeline",
}


def test_table__operations_of_the_document__all_have_a_line_and_no_other_has() -> None:
    known = {operation.id for operation in operations()}

    forgotten, stale = sorted(known - set(OPERATIONS)), sorted(set(OPERATIONS) - known)
    assert not forgotten, f"Say in OPERATIONS of core/rights/table.py what these ask for: {forgotten}"
    assert not stale, f"These lines of OPERATIONS in core/rights/table.py are of nothing any more: {stale}"


def test_table__tools_of_the_agent__all_have_a_line_and_no_other_has() -> None:
    assert {tool.name for tool in ALL} == set(TOOLS), "TOOLS of core/rights/table.py names every tool of the agent."


@pytest.mark.parametrize("who", PEOPLE)
def test_operations__of_the_own_project__as_the_role_allows(
    who: str, own: Project, populated: Populated, offline: None
) -> None:
    user = person(who, own)
    rights, client = rights_in(user, own.pk), signed_in(user)

    wrong = [
        problem
        for operation in _of_django()
        if not opened_below(who, operation.right)
        and (problem := _problem_of(client, operation, populated.known, rights))
    ]

    assert not wrong


# A role in another project is none here, whichever it is.
@pytest.mark.parametrize("who", cases(PEOPLE, by_day=[Role.ADMINISTRATOR, "superuser"]))
def test_operations__of_another_project__none_but_for_superusers(
    who: str, own: Project, other: Project, populated: Populated, offline: None
) -> None:
    user = person(who, own)
    client, known = signed_in(user), {**populated.known, "project_id": str(other.pk)}

    wrong = [
        problem
        for operation in _of_django()
        if (problem := _problem_of(client, operation, known, rights_in(user, other.pk)))
    ]

    assert not wrong
    assert bool(rights_in(user, other.pk)) is (who == "superuser")


def test_operations__by_nobody_or_for_another_project__refused(
    own: Project, other: Project, populated: Populated, offline: None
) -> None:
    nobody, owner = Client(raise_request_exception=False), Client(headers=populated.headers)
    wrong = []
    for operation in _of_django():
        if operation.right is Right.KEY:
            continue
        found = [
            _asked(nobody, operation, populated.known, headers={"X-Project-Id": str(own.pk)}),
            _asked(owner, operation, populated.known, f"?project_id={other.pk}"),
        ]
        if found != [(401, ""), (403, "project_mismatch")]:
            wrong.append(f"{operation.id}: {found}")

    assert not wrong


def test_operations__of_rows_of_another_project__not_found(
    own: Project, other: Project, populated: Populated, offline: None
) -> None:
    """A key that manages another project calls each operation whose path names a row, with a body that succeeds for the
    row's own project, and each one that lists."""
    make_staff(Role.EDITOR, other, name="scorer")
    stranger = Client(headers={"Authorization": f"Bearer {make_key(other)[1]}", "X-Project-Id": str(other.pk)})
    ids = {value for value in populated.known.values() if len(str(value)) == len(str(own.pk))}
    assert len(ids) > 20
    wrong = []
    for operation in _of_django():
        if operation.id in _OF_CLIENTS or not (_ROW.search(operation.path) or operation.method == "get"):
            continue
        with transaction.atomic():
            answer = ask(stranger, operation, {**populated.known, "project_id": str(other.pk)})
            transaction.set_rollback(True)
        shown = [] if answer.streaming else [one for one in ids if one in answer.content.decode()]
        if shown or (_ROW.search(operation.path) and answer.status_code != 404):
            wrong.append(f"{operation.id}: {answer.status_code} {shown}")

    assert not wrong


@pytest.mark.parametrize("who", PEOPLE)
def test_chat__session__as_the_role_allows(who: str, own: Project) -> None:
    user = person(who, own)
    client = signed_in(user)
    refused = ""
    try:
        read_call(_chat(client, own), b"{}")
    except ApplicationError as error:
        refused = error.code
    except Exception as error:
        refused = type(error).__name__

    allowed = OPERATIONS["chatWithAgent"] in rights_in(user, own.pk)
    # A caller with the right gets an error about the missing parts of the request.
    assert refused == ("ValidationError" if allowed else "permission_denied")


@pytest.mark.parametrize("who", PEOPLE)
def test_prompt_fetch__session__as_the_role_allows(who: str, own: Project) -> None:
    user = person(who, own)
    scope = {**_chat(signed_in(user), own), "method": "GET", "path": "/api/llm/prompts/support"}
    refused = ""
    try:
        assert project_of_session(scope) == own.pk
    except ApplicationError as error:
        refused = error.code

    allowed = OPERATIONS["getPrompt"] in rights_in(user, own.pk)
    assert refused == ("" if allowed else "permission_denied")


def _of_django() -> list[Operation]:
    """Of the other operations the chat and the prompts are tested above, and the rest takes keys alone."""
    return [operation for operation in operations() if operation.path not in channels_paths()]


def _problem_of(client: Client, operation: Operation, known: dict[str, Any], rights: frozenset[Right]) -> str:
    status, code = _asked(client, operation, known, headers={"X-Project-Id": known["project_id"]})
    at = f"{operation.id} ({operation.right}): {status}"
    if operation.right is Right.KEY:
        return "" if status == 401 else f"{at}, a session of the admin opened what is for keys"
    refused = (status, code) == (403, "permission_denied")
    if operation.right not in rights:
        return "" if refused else f"{at}, where the table denies"
    # With the right, an operation may still refuse a row for a reason of its own, as the comment of somebody else.
    return f"{at}, where the table allows" if refused or status == 401 or status >= 500 else ""


def _asked(
    client: Client, operation: Operation, known: dict[str, Any], query: str = "", headers: dict[str, str] | None = None
) -> tuple[int, str]:
    if operation.id in _FOR_GOOD:
        known = {**known, "session_id": "gone", "user_id": "gone", "request_id": uuid4()}
    path = re.sub(r"{(\w+)}", lambda name: str(known[name[1]]), operation.path)
    with transaction.atomic():
        answer = client.generic(
            operation.method.upper(),
            path + query,
            "" if operation.method == "get" else "{}",
            content_type=next(iter(operation.described.get("requestBody", {}).get("content", {})), "application/json"),
            headers=headers or {},
        )
        transaction.set_rollback(True)
    return answer.status_code, answer.json()["error"]["code"] if answer.status_code == 403 else ""


def _chat(client: Client, project: Project) -> dict[str, Any]:
    session = client.cookies["sessionid"].value
    token = "a" * 32
    headers = {
        "host": "localhost",
        "cookie": f"sessionid={session}; csrftoken={token}",
        "x-csrftoken": token,
        "x-project-id": str(project.pk),
        "content-type": "application/json",
    }
    return {
        "type": "http",
        "method": "POST",
        "path": "/api/agent/chat",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }


def test_role__taken_away_while_a_chat_goes_on__ends_its_rights(own: Project) -> None:
    from core.api.authentication import rights_now

    user = person("reader", own)
    access = ProjectAccess(own.pk, rights_in(user, own.pk), f"user:{user.username}", user.pk)
    assert Right.READ_CONTENT in rights_now(access)

    Membership.objects.filter(user=user).delete()
    assert rights_now(access) == frozenset()
    User.objects.filter(pk=user.pk).delete()
    assert rights_now(access) == frozenset()


def test_key__that_manages__has_every_right_of_its_project_and_no_role(
    own: Project, populated: Populated, offline: None
) -> None:
    client = Client(headers={"Authorization": populated.headers["Authorization"]}, raise_request_exception=False)
    managed = [operation for operation in _of_django() if operation.right in PROJECT_RIGHTS]

    wrong = [
        problem
        for operation in managed
        if (problem := _problem_of(client, operation, populated.known, frozenset(PROJECT_RIGHTS)))
    ]

    assert not wrong
