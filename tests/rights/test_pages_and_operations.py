"""The pages and the operations of the API that answer the same: who is refused one is refused the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from django.db import transaction

from core.models import Project
from core.rights.checks import page_names
from core.rights.table import OPERATIONS, PAGES
from core.roles import RIGHTS_OF, Right, Role
from core.ui.registry import registered_pages
from tests.factories.everything import one_of_everything
from tests.rights.conftest import Populated, person, signed_in
from tests.rights.test_pages import pages_of


class Behind(NamedTuple):
    shown: str
    sent: str = ""


BEHIND = {
    "index": Behind("overview"),
    "analytics_requests_changelist": Behind("listRequests", "saveView"),
    "analytics_requests_detail": Behind("getRequest", "recordScore"),
    "analytics_requests_export": Behind("exportRequests"),
    "request_link": Behind("getRequest"),
    "analytics_requests_image": Behind("requestConversation"),
    "sessions": Behind("listSessions", "saveView"),
    "session": Behind("getSession", "addSessionFeedback"),
    "user": Behind("getUser", "deleteUser"),
    "errors": Behind("errorGroups"),
    "usage": Behind("cost"),
    "usage_export": Behind("exportCost"),
    "prompt_caches": Behind("promptCacheMetrics"),
    "providers": Behind("providerLatency", "testIntegration"),
    "search": Behind("lookup"),
    "prompts": Behind("listPromptConfigs"),
    "prompt": Behind("getPromptConfig", "activatePromptVersion"),
    "prompt_new": Behind("createPromptConfig", "createPromptConfig"),
    "prompt_editor": Behind("createPromptVersion", "createPromptVersion"),
    "evaluators": Behind("listEvaluators"),
    "evaluator": Behind("getEvaluator", "createEvaluatorVersion"),
    "evaluator_form": Behind("createEvaluator", "createEvaluator"),
    "online_evaluations": Behind("listOnlineEvaluations", "createOnlineEvaluation"),
    "online_evaluation": Behind("getOnlineEvaluation", "changeOnlineEvaluation"),
    "review_labels": Behind("createReviewQueue", "createReviewQueue"),
    "review_image": Behind("reviewItemConversation"),
    "experiments": Behind("listExperiments"),
    "experiment": Behind("getExperiment", "pickExperimentWinner"),
    "experiment_form": Behind("createExperiment", "createExperiment"),
    "rollouts": Behind("listRollouts"),
    "rollouts_rollout_change": Behind("getRollout", "startRollout"),
    "rollout_form": Behind("createRollout", "createRollout"),
    "assignments": Behind("listAssignments"),
    "models": Behind("listCatalogModels"),
    "model": Behind("listCatalogModels"),
    # It waits for the first request, and its form makes an API key.
    "connect": Behind("listRequests", "issueApiKey"),
    "reviews": Behind("listReviewQueues", "createReviewQueue"),
    "review": Behind("getReviewQueue", "scoreReviewItem"),
    "datasets": Behind("listDatasets", "createDataset"),
    "dataset": Behind("getDataset", "changeDatasetItem"),
    "dataset_export": Behind("exportDataset"),
    "alerts": Behind("listAlerts"),
    "alert": Behind("getAlert", "changeAlert"),
    "alert_form": Behind("createAlert", "createAlert"),
    "alert_channels": Behind("createAlertChannel", "createAlertChannel"),
    "limits": Behind("usage", "putSettings"),
    "end_users": Behind("listEndUserLimits", "createEndUserLimit"),
    "guardrails": Behind("guardrailUsage", "putSettings"),
    "settings": Behind("getSettings", "putSettings"),
    "provider_keys": Behind("listIntegrations"),
    "provider_key": Behind("updateIntegration", "updateIntegration"),
    "api_keys": Behind("listApiKeys", "issueApiKey"),
    "prices": Behind("listPrices", "syncPrices"),
    "price": Behind("getPrice", "setPrice"),
    "teams": Behind("listTeams", "createTeam"),
    "members": Behind("listMembers", "addMember"),
    "model_groups": Behind("listModelGroups", "createModelGroup"),
    "audit": Behind("listAudit"),
    "trace_destinations": Behind("listTraceDestinations", "createTraceDestination"),
    "dashboards": Behind("listDashboards", "createDashboard"),
    "dashboard": Behind("getDashboard", "changeDashboard"),
    "chart_form": Behind("listFigures", "createChart"),
}


@pytest.fixture(autouse=True)
def imported() -> None:
    """Has the apps import their pages."""
    assert set(page_names()) >= set(BEHIND)


def test_pages__each__are_shown_to_whom_the_api_answers() -> None:
    assert {page.name for page in registered_pages()} == set(BEHIND)
    differing = {
        page: (PAGES[page], OPERATIONS[behind.shown])
        for page, behind in BEHIND.items()
        # Everybody who is signed in has a Home, which shows the figures of projects that the person may read.
        if page != "index" and PAGES[page] is not OPERATIONS[behind.shown]
    }
    assert not differing


@pytest.mark.parametrize("role", list(Role))
def test_forms__sent_by_each_role__refused_where_the_api_refuses(
    role: Role, own: Project, populated: Populated, offline: None
) -> None:
    client = signed_in(person(role, own))
    rows = one_of_everything(own)
    forms = {page.name for page in registered_pages() if "POST" in page.methods}
    assert forms == {name for name, behind in BEHIND.items() if behind.sent}

    wrong = {}
    for page in pages_of(own, rows):
        if page.name not in forms:
            continue
        right = OPERATIONS[BEHIND[page.name].sent]
        status = _sent(client, f"{page.address}?project={own.pk}")
        if (status == 403) is _may(role, right):
            wrong[page.name] = (right, status)

    assert not wrong


def _may(role: Role, right: Right) -> bool:
    return right in RIGHTS_OF[role]


def _sent(client: Any, address: str) -> int:
    with transaction.atomic():
        status: int = client.post(address, {"action": ""}).status_code
        transaction.set_rollback(True)
    return status
