"""Every operation that Django serves succeeds once, and so has its success compared with the document.

`tests.described` looks up each answer. What a worker of the gateway serves is asked in `test_gateway_conformance.py`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client

from core.models import Project
from core.roles import Role
from tests.factories.core import make_staff
from tests.openapi.conftest import Populated, populate, store_requests
from tests.openapi.routes import ASKING_MODELS, Operation, channels_paths, operations

# What these delete no rollback of a transaction restores, so that they are the last, and each test has its own rows.
FOR_GOOD = frozenset({"deleteSession", "deleteRequest"})
_PLAN = {"config_id": "{config_id}", "target_version_id": "{other_id}"}
_GROUP = {"strategy": "ordered", "members": [{"model": "gpt-4o-mini"}]}
_SCORE = {"request_id": "{request_id}", "score_name": "tone", "score_value": 1}
_ITEM = {"messages": [{"role": "user", "content": "a question"}]}
_EXPERIMENT = {"candidates": [{"model": "gpt-4o-mini"}, {"model": "gpt-4o"}]}
# The bodies of operations that do not succeed without one, in which `{key}` stands for what `populated` knows.
BODIES: dict[str, Any] = {
    "createEndUserLimit": {"user_id": "bob"},
    "createTeam": {"name": "new"},
    "replaceTeamMembers": {"members": []},
    "createTraceDestination": {"name": "new", "endpoint": "http://127.0.0.1:9"},
    "createAlert": {
        "name": "new",
        "query": {"figure": "error_rate"},
        "condition": "above",
        "threshold": 0.05,
        "window_minutes": 15,
    },
    "createAlertChannel": {"name": "new", "kind": "email", "emails": ["a@x.example"]},
    "silenceAlert": {"until": None},
    "addIntegration": {"provider": "openai", "api_key": "sk-x", "base_url": "http://127.0.0.1:9/v1"},
    "issueApiKey": {"name": "new", "scopes": ["gateway"]},
    "addMember": {"username": "newcomer", "role": "reader"},
    "createInvitation": {"email": "new@example.com", "role": "reader"},
    "changeMember": {"role": "editor"},
    "createModelGroup": {"name": "new", **_GROUP},
    "replaceModelGroup": _GROUP,
    "setPrice": {"input_cost_per_1m": "1", "output_cost_per_1m": "2"},
    "createPromptConfig": {"name": "new"},
    "putPromptLabel": {"version_number": 2},
    "createPromptVersion": {"system_prompt": "Be brief."},
    "pushPromptFile": {"name": "support.md", "text": "Be brief."},
    "checkPrompt": {"system_prompt": "Be brief."},
    "createRollout": _PLAN,
    "forecastRollout": {"config_id": "{config_id}"},
    "createReviewQueue": {"kind": "boolean", "name": "new", "score_name": "tone"},
    "addReviewItem": {"request_id": "{request_id}"},
    "assignReviewItems": {"assignee": "scorer"},
    "scoreReviewItem": {"score_value": True},
    "createDataset": {"name": "new"},
    "addDatasetItems": {"items": [_ITEM]},
    "addDatasetItemsFromRequests": {"request_ids": ["{request_id}"]},
    "addDatasetItemsFromReview": {"queue_id": "{queue_id}", "states": ["open"]},
    "importDataset": _ITEM,
    "recordScore": {"project_id": "{project_id}", **_SCORE},
    "recordScores": {"project_id": "{project_id}", "scores": [_SCORE]},
    "search": {"query": "question"},
    "addSessionFeedback": {"project_id": "{project_id}", "score": 1},
    "createExperiment": _EXPERIMENT,
    "estimateExperiment": _EXPERIMENT,
    "pickExperimentWinner": {"winner": "A"},
    "giveExperimentAnswer": {"label": "B", "content": "At seven."},
    "createEvaluator": {"name": "new", "kind": "contains", "definition": {"value": "a"}},
    "dryRunEvaluator": {"request_ids": ["{request_id}"]},
    "createOnlineEvaluation": {"evaluator_id": "{evaluator_id}", "rate": 0.1},
    "createEvaluatorVersion": {"definition": {"value": "b"}},
    "createDashboard": {"name": "new"},
    "changeDashboard": {"is_shared": True},
    "createChart": {"title": "new", "kind": "table", "figures": ["request_count", "error_rate"], "group_by": "model"},
    "changeChart": {"position": 0, "is_wide": True},
    "addComment": {"request_id": "{request_id}", "text": "Why?"},
    "changeComment": {"text": "Why not?"},
    "assign": {"request_id": "{request_id}", "assignee": "described"},
    "changeAssignment": {"state": "done"},
    "saveView": {"name": "new", "page": "requests", "query": "status=error"},
}
QUERIES = {"lookup": {"q": "{request_id}"}}
# Other values in paths than those that `populated` knows by the parameter's name.
IN_PATHS = {"activatePromptVersion": {"version_id": "{other_id}"}}
_ROLLED_BACK = ("startRollout", "rollbackRollout")
# The operations without which another one has nothing to do.
BEFORE: dict[str, tuple[str, ...]] = {
    "pauseRollout": ("startRollout",),
    "promoteRollout": ("startRollout",),
    "rollbackRollout": ("startRollout",),
    "completeRollout": ("startRollout",),
    "removePrice": ("setPrice",),
    "createRollout": _ROLLED_BACK,
    "activatePromptVersion": _ROLLED_BACK,
    "undoActivation": (*_ROLLED_BACK, "activatePromptVersion"),
    "deletePromptConfig": _ROLLED_BACK,
    "updateIntegration": ("addIntegration",),
    "removeIntegration": ("addIntegration",),
    "testIntegration": ("addIntegration",),
    "createExperiment": ("addIntegration",),
    "estimateExperiment": ("addIntegration",),
    "getPrice": ("setPrice",),
    "listPriceHistory": ("setPrice",),
}
OF_DJANGO = {operation.id: operation for operation in operations() if operation.path not in channels_paths()}


@pytest.fixture
def populated(db: None, clickhouse: None, spool: Path) -> Populated:
    cache.clear()
    store_requests(spool)
    return populate()


def filled(value: Any, known: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: filled(inner, known) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, known) for inner in value]
    whole = re.fullmatch(r"{(\w+)}", value) if isinstance(value, str) else None
    return known[whole[1]] if whole else value


def ask(client: Client, operation: Operation, known: dict[str, Any]) -> Any:
    if operation.path.startswith("/api/otlp/"):
        sent: Any = {}
    elif operation.id == "importPrompts":
        sent = ask(client, OF_DJANGO["exportPrompts"], known).json()
    else:
        sent = filled(BODIES.get(operation.id, {}), known)
    return client.generic(
        operation.method.upper(),
        operation.path.format(**{**known, **filled(IN_PATHS.get(operation.id, {}), known)}),
        "" if operation.method in ("get", "head", "delete") else json.dumps(sent),
        content_type=next(iter(operation.described.get("requestBody", {}).get("content", {})), "application/json"),
        query_params=filled(QUERIES.get(operation.id, {}), known),
    )


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators:Warning")
def test_operations__of_django__that_are_read_answer_head_as_get(populated: Populated, offline: None) -> None:
    client = Client(headers=populated.headers, raise_request_exception=False)
    read = [operation for operation in OF_DJANGO.values() if operation.method == "get"]
    failed = {}
    for operation in read:
        with transaction.atomic():
            for before in BEFORE.get(operation.id, ()):
                ask(client, OF_DJANGO[before], populated.known)
            answer, head = (ask(client, one, populated.known) for one in (operation, operation._replace(method="head")))
            transaction.set_rollback(True)
        if (head.status_code, head.headers["content-type"]) != (answer.status_code, answer.headers["content-type"]):
            failed[operation.id] = head.status_code

    assert read
    assert failed == {}


# The export streams on an event loop, which WSGI does not have.
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators:Warning")
def test_operations__of_django__each_succeeds_as_described(populated: Populated, offline: None) -> None:
    make_staff(name="newcomer")
    make_staff(Role.EDITOR, Project.objects.get(pk=populated.known["project_id"]), name="scorer")
    client = Client(headers=populated.headers, raise_request_exception=False)
    failed = {}
    for operation in sorted(OF_DJANGO.values(), key=lambda operation: operation.id in FOR_GOOD):
        if operation.id in ASKING_MODELS:
            continue
        with transaction.atomic():
            for before in BEFORE.get(operation.id, ()):
                ask(client, OF_DJANGO[before], populated.known)
            answer = ask(client, operation, populated.known)
            transaction.set_rollback(True)
        if str(answer.status_code) not in operation.described["responses"] or answer.status_code >= 300:
            failed[operation.id] = f"{answer.status_code} {answer.content.decode()}"

    assert failed == {}
