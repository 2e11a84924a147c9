from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from analytics.models import EvaluationBudget, OnlineEvaluation
from analytics.online_evaluations.money import month_of
from core.models import Project
from core.roles import Role
from integrations.access.credentials import store_secret
from integrations.models import ModelPrice, ProviderIntegration
from tests.console.conftest import shown, text_of
from tests.factories.core import make_project, make_staff
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_online_evaluation, make_tasks
from tests.tables.cases import tabled

LIST = "/admin/online-evaluations/"
RUBRIC: dict[str, Any] = {
    "model": "openai/gpt-4o",
    "criteria": [
        {
            "name": "polite",
            "meaning": "It is.",
            "labels": [
                {"name": "yes", "meaning": "So.", "score": 1},
                {"name": "no", "meaning": "Not.", "score": 0},
            ],
        }
    ],
}


@pytest.fixture
def priced(project: Project) -> None:
    """Without a price no budget could be kept."""
    row = ProviderIntegration(project=project, provider="openai", enabled=True)
    store_secret(row, "sk-test")
    row.save()
    rates = {"input_cost_per_1m": "2.5", "output_cost_per_1m": "10"}
    ModelPrice.objects.create(provider="openai", model="gpt-4o", source="manual", **rates)


def page(row: OnlineEvaluation) -> str:
    return f"{LIST}{row.project_id}/{row.pk}/"


def send(client: Client, project: Project, path: str, **values: str) -> Any:
    return client.post(f"{path}?project={project.pk}&range=24h", values)


def test_list__without_any__says_the_first_step(editor: Client, project: Project) -> None:
    assert "make an evaluator that says what a good answer is" in shown(editor, project, LIST)

    make_evaluator(project, kind="equals", ignore_case=True)
    assert "make an evaluator that says what a good answer is" in shown(editor, project, LIST)

    make_evaluator(project, name="lucky")
    content = shown(editor, project, LIST)
    assert "choose an evaluator and a share of the answers" in content
    assert 'href="#new-evaluation"' in content


def test_list__shows_due_done_missing_by_reason_and_money(editor: Client, project: Project) -> None:
    judge = make_evaluator(project, kind="judge", name="polite", **RUBRIC)
    row = make_online_evaluation(judge, rate=0.25, monthly_budget_usd=Decimal(20))
    make_tasks(row, due=2, done=3, failed=4, skipped=1)
    EvaluationBudget.objects.create(
        evaluation=row, month=month_of(timezone.now()), budget_usd=20, spent_usd=Decimal("1.25")
    )
    make_tasks(make_online_evaluation(make_evaluator(make_project())), done=9)

    text = shown(editor, project, LIST)

    for part in ("polite@1", "25 %", "2, oldest for 1 min", "5: judge failed 4, budget spent 1", "$1.25 of $20.00"):
        assert part in text
    # Three scores at 0.2 cents, four failures at 0.1 cents.
    assert "$0.01" in text
    assert "Online evaluations, the newest first" in text


@pytest.mark.usefixtures("priced")
def test_form__makes_one_and_its_page_has_the_figures(editor: Client, project: Project) -> None:
    judge = make_evaluator(project, kind="judge", name="polite", **RUBRIC)

    answer = send(
        editor,
        project,
        LIST,
        evaluator_id=str(judge.pk),
        rate="12.5",
        monthly_budget_usd="3",
        filter="language=de&metadata=tier:gold&metadata=shop:7",
        matched="on",
    )

    row = OnlineEvaluation.objects.get()
    assert answer.status_code == 302
    assert page(row) in answer["location"]
    assert (row.rate, row.matched, row.created_by) == (0.125, True, "user:ann")
    assert row.monthly_budget_usd == Decimal(3)
    assert row.filter == {"language": "de", "metadata": ["tier:gold", "shop:7"]}
    text = shown(editor, project, page(row))
    for part in ("12.5 %", "language=de", "$0 of $3.00", "Of the last hour", "Version 1"):
        assert part in text


@tabled
def test_form__what_the_api_refuses__is_said_at_the_field(
    editor: Client, project: Project, values: dict[str, str], problem: str
) -> None:
    judge = make_evaluator(project, kind="judge", name="polite", **RUBRIC)
    given = {"evaluator_id": str(judge.pk), "rate": "5", "monthly_budget_usd": "3", "filter": "", **values}

    answer = send(editor, project, LIST, **given)

    assert problem in text_of(answer)
    assert not OnlineEvaluation.objects.exists()


def test_page__pauses_resumes_changes_and_deletes(editor: Client, project: Project) -> None:
    row = make_tasks(make_online_evaluation(make_evaluator(project, name="lucky")), due=1)

    assert send(editor, project, page(row), action="pause").status_code == 302
    row.refresh_from_db()
    assert (row.state, "Resume" in shown(editor, project, page(row))) == ("paused", True)
    assert send(editor, project, page(row), action="resume").status_code == 302
    changed = send(editor, project, page(row), action="change", rate="50", filter="user_id=ann", monthly_budget_usd="")
    assert changed.status_code == 302
    row.refresh_from_db()
    assert (row.state, row.rate, row.filter, row.matched) == ("active", 0.5, {"user_id": "ann"}, False)
    refused = send(editor, project, page(row), action="change", rate="50", filter="variant=target", matched="on")
    assert "A matched sample takes both arms of a rollout." in text_of(refused)
    assert send(editor, project, page(row), action="delete").status_code == 302
    row.refresh_from_db()
    assert row.state == "deleted"
    assert editor.get(f"{page(row)}?range=24h").status_code == 404


def test_page__reader__reads_and_sends_nothing(project: Project, client: Client) -> None:
    client.force_login(make_staff(Role.READER, project, name="bob"))
    row = make_tasks(make_online_evaluation(make_evaluator(project, name="lucky")), done=1)

    for path in (LIST, page(row)):
        content = shown(client, project, path)
        assert "lucky" in content
        assert "<details" not in content.split("<main", 1)[1]
        assert send(client, project, path, action="pause").status_code == 403
    row.refresh_from_db()
    assert row.state == "active"
