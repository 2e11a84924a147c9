from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from itertools import zip_longest
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from analytics.errors import AnalyticsUnavailableError
from analytics.queries.variants.totals import ConfigTraffic
from core.models import Project
from core.roles import Role
from prompts.models import PromptConfig
from rollouts.evaluation import Policy
from rollouts.evaluation.policy import ALPHA
from rollouts.forecasts import plan as planning
from rollouts.models import Rollout
from rollouts.quality.entries import entries_of
from rollouts.services import roll_back_rollout
from rollouts.states import DEFAULT_STAGES, TEST_STAGES
from tests.factories.core import client_of, make_staff
from tests.factories.datasets import make_dataset
from tests.factories.evaluators import make_evaluator
from tests.factories.gates import make_verdict
from tests.factories.prompts import make_config, make_version
from tests.factories.rollouts import make_rollout
from tests.rollouts.quality.tasks import matched
from tests.rollouts.quality.test_judges import CRITERION

pytestmark = pytest.mark.django_db

PATH = "/admin/rollouts/new/"
STAGES = ((10, 0, 5), (100, 10, 0))
FIELDS = ("weight", "min_duration_minutes", "min_requests", "settle_minutes")


@pytest.fixture
def config(project: Project) -> PromptConfig:
    config = make_config(project, "support")
    make_version(config, "You are kind.\nBe brief.")
    make_version(config, "You are kind.\nBe very brief.", model="gpt-4o")
    config.refresh_from_db()
    return config


@pytest.fixture
def editor(client: Client, project: Project) -> Client:
    client.force_login(make_staff(Role.EDITOR, project))
    return client


@pytest.fixture(autouse=True)
def traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ConfigTraffic(86_400, 0, timezone.now() - timedelta(days=1))
    monkeypatch.setattr(planning, "config_traffic", lambda *_, **__: found)


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return b"".join(answer.streaming_content).decode()


def shown(client: Client, config: PromptConfig, **query: str) -> str:
    return text_of(client.get(PATH, {"project": str(config.project_id), "config": str(config.pk), **query}))


def sent(client: Client, config: PromptConfig, stages: Any = STAGES, **fields: Any) -> Any:
    target = config.versions.order_by("-number")[0]
    body: dict[str, Any] = {
        "target": str(target.pk),
        "name": "brief",
        "mode": "auto",
        "allocation_type": "user_sticky",
        "unanswered": "roll_back",
        "error_rate": "roll_back",
        "latency_p95": "hold",
        "latency_average": "hold",
        "cost_per_request": "hold",
        "contract": "roll_back",
        "truncated": "ignore",
        "fallback": "hold",
        "empty": "roll_back",
        "cost_allowance": "50",
        "gate": "none",
        "gate_dataset": "",
        "action": "create",
        "stages-TOTAL_FORMS": "12",
        "stages-INITIAL_FORMS": "12",
    }
    for number in range(12):
        row = stages[number] if number < len(stages) else ("",)
        for name, value in zip_longest(FIELDS, row, fillvalue=""):
            body[f"stages-{number}-{name}"] = str(value)
    address = f"{PATH}?project={config.project_id}&config={config.pk}"
    return client.post(address, {**body, **fields})


def test_form__prompt_chosen__versions_differences_stages_and_forecast(editor: Client, config: PromptConfig) -> None:
    text = shown(editor, config)
    assert "version 1, the active one" in text
    assert "<ins> very</ins>" in text
    assert "You are kind." not in text
    assert "gpt-4o" in text
    for stage in DEFAULT_STAGES:
        assert f'value="{stage.weight}"' in text
    assert "At today&#x27;s 60 requests a minute the stages take about" in text
    for label in ("Share of the target (%), stage 1", "At least minutes, stage 12"):
        assert label in text


def test_form__stages_in_the_address__forecast_of_these(editor: Client, config: PromptConfig) -> None:
    text = shown(editor, config, stages="20:60:0,100:120:0")
    assert "the stages take about 3 hours" in text
    api = client_of(config.project).post(
        "/api/llm/prompts/rollouts/forecast",
        {
            "config_id": str(config.pk),
            "stages": [
                {"weight": 20, "min_duration_minutes": 60, "min_requests": 0},
                {"weight": 100, "min_duration_minutes": 120, "min_requests": 0},
            ],
        },
    )
    assert api.json()["minutes"] == 180
    assert "stages[1].weight" in shown(editor, config, stages="20:60:0,10:1:1")
    assert "stages[0].settle_minutes" in shown(editor, config, stages="20:60:0:61")


def test_form__sent__rollout_as_filled_in(editor: Client, config: PromptConfig) -> None:
    answer = sent(editor, config)
    row = Rollout.objects.get()
    assert answer.status_code == 302
    assert f"/admin/rollouts/rollout/{row.pk}/change/" in answer.url
    assert (row.name, row.mode, row.allocation_type, row.status) == ("brief", "auto", "user_sticky", "pending")
    assert row.policy == {"latency_p95": "hold", "truncated": "ignore", "cost_allowance": 0.5}
    found = row.stages.values_list("weight", "min_duration_minutes", "min_requests")
    assert [tuple(stage) for stage in found] == [(10, 0, 5), (100, 10, 0)]
    assert row.created_by.startswith("user:")


def test_form__create_and_start__is_running(editor: Client, config: PromptConfig) -> None:
    sent(editor, config, action="start")
    assert Rollout.objects.get().status == "running"


def test_form__gate_with_a_data_set__kept_and_asked_at_the_start(editor: Client, config: PromptConfig) -> None:
    dataset = make_dataset(config.project, name="support")
    make_dataset(make_config().project, name="alien")
    text = shown(editor, config)
    assert "Any data set" in text
    assert ">support</option>" in text
    assert "alien" not in text
    text = text_of(sent(editor, config, gate="experiment", gate_dataset=str(dataset.pk), action="start"))
    assert "The gate is not passed. No experiment over a data set compares version 2 with version 1" in text
    assert not Rollout.objects.exists()
    sent(editor, config, gate="experiment", gate_dataset=str(dataset.pk))
    row = Rollout.objects.get()
    assert (row.gate, row.gate_dataset_id, row.status) == ("experiment", dataset.pk, "pending")


def test_form__data_set_without_a_gate__error_at_the_field(editor: Client, config: PromptConfig) -> None:
    dataset = make_dataset(config.project)
    assert "Takes an experiment as the gate." in text_of(sent(editor, config, gate_dataset=str(dataset.pk)))
    assert not Rollout.objects.exists()


def test_form__gate_passed__create_and_start_runs(editor: Client, config: PromptConfig) -> None:
    first, second = config.versions.order_by("number")
    make_verdict(make_dataset(config.project), first, second)
    sent(editor, config, gate="experiment", action="start")
    assert Rollout.objects.get().status == "running"


def test_form__minima_left_out__those_of_the_defaults(editor: Client, config: PromptConfig) -> None:
    sent(editor, config, ((10, "", ""), (60, 1, 1)))
    first = Rollout.objects.get().stages.get(number=1)
    assert (first.min_duration_minutes, first.min_requests, first.settle_minutes) == (60, 100, 4)


def test_form__minutes_to_settle__kept_and_shown_on_the_page(editor: Client, config: PromptConfig) -> None:
    sent(editor, config, ((10, 30, 1, 7), (100, 1, 1)))
    row = Rollout.objects.get()
    assert row.stages.get(number=1).settle_minutes == 7
    page = editor.get(f"/admin/rollouts/rollout/{row.pk}/change/", {"project": str(config.project_id)})
    assert "30 min, 1 requests, 7 min to settle" in text_of(page)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"stages": ((10, 1, 1), (5, 1, 1))}, "Weights rise: expected more than 10."),
        ({"stages": ((0, 1, 1),)}, "Expected an integer from 1 to 100."),
        ({"stages": (("", 5, 1),)}, "Expected an integer from 1 to 100."),
        ({"stages": (("ten", 5, 1),)}, "Enter a whole number."),
        ({"stages": ()}, "Expected 1 to 50 stages."),
        ({"stages": ((10, 5, 1, 6),)}, "Expected an integer from 0 to 5, the min_duration_minutes of the stage."),
        ({"target": str(uuid4())}, "That choice is not one of the available choices."),
        ({"name": "x" * 101}, "at most 100 characters"),
        ({"cost_allowance": "-1"}, "greater than or equal to 0"),
        ({"gate": "unheard-of"}, "unheard-of is not one of the available choices"),
        ({"gate": "shadow"}, "A shadow takes one."),
        ({"gate": "shadow", "shadow_share": "0"}, "greater than or equal to 0.001"),
        ({"gate": "shadow", "shadow_evaluator": str(uuid4())}, "That choice is not one of the available choices."),
        ({"gate": ""}, "This field is required."),
        ({"gate": "experiment", "gate_dataset": str(uuid4())}, "That choice is not one of the available choices."),
        ({"gate": "experiment", "gate_dataset": "x"}, "is not a valid UUID"),
        ({"unanswered": "explode"}, "explode is not one of the available choices"),
    ],
)
def test_form__bad_value__error_at_the_field_and_nothing_lost(
    editor: Client, config: PromptConfig, changes: dict[str, Any], problem: str
) -> None:
    text = text_of(sent(editor, config, **{"name": "typed before", **changes}))
    assert problem in text
    assert "typed before" in text or "name" in changes
    assert not Rollout.objects.exists()


def test_form__update_the_forecast__nothing_made(editor: Client, config: PromptConfig) -> None:
    text = text_of(sent(editor, config, ((20, 60, 0), (100, 120, 0)), action="forecast"))
    assert "the stages take about 3 hours" in text
    assert not Rollout.objects.exists()


def test_form__rollout_under_way__leads_to_it(editor: Client, config: PromptConfig) -> None:
    rollout = make_rollout(config)
    assert f"/admin/rollouts/rollout/{rollout.pk}/change/" in shown(editor, config)
    assert "already" in text_of(sent(editor, config))
    assert Rollout.objects.count() == 1


def test_form__version_rolled_back_before__says_so(editor: Client, config: PromptConfig) -> None:
    rollout = make_rollout(config, started=True)
    roll_back_rollout(
        project_id=config.project_id, rollout_id=rollout.pk, actor="test", reason="Errors: 9 % against 1 %."
    )
    text = shown(editor, config)
    assert "Version 2 was rolled back before" in text
    assert "Errors: 9 % against 1 %." in text
    assert f"/admin/rollouts/rollout/{rollout.pk}/change/" in text


def test_form__rollback_of_a_rollout_that_never_ran__is_no_warning(editor: Client, config: PromptConfig) -> None:
    rollout = make_rollout(config)
    roll_back_rollout(project_id=config.project_id, rollout_id=rollout.pk, actor="test")
    assert "was rolled back before" not in shown(editor, config)


def test_form__every_metric__says_its_default(editor: Client, config: PromptConfig) -> None:
    text = shown(editor, config)
    policy = Policy()
    for metric in ALPHA:
        default = policy.action(metric).value
        [field] = re.findall(f'<select name="{metric.value}".*?</select>.*?</small>', text, re.DOTALL)
        assert f'<option value="{default}" selected>' in field
        assert f"By default: {default.replace('_', ' ')}." in field
    assert 'name="stopped"' not in text


def test_form__no_prompt_chosen__the_only_ready_one_or_a_choice(editor: Client, config: PromptConfig) -> None:
    query = {"project": str(config.project_id)}
    assert "version 1, the active one" in text_of(editor.get(PATH, query))
    make_config(config.project, "other", versions=2)
    text = text_of(editor.get(PATH, query))
    assert "Continue" in text
    assert ">other</option>" in text


def test_form__nothing_to_roll_out__next_step(editor: Client, project: Project) -> None:
    assert "at least two versions" in text_of(editor.get(PATH, {"project": str(project.pk)}))
    single = make_config(project, versions=1)
    assert "no second version" in shown(editor, single)


def test_form__store_away__the_form_and_a_message(
    editor: Client, config: PromptConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> ConfigTraffic:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    monkeypatch.setattr(planning, "config_traffic", away)
    text = shown(editor, config)
    assert "The analytics store does not answer." in text
    assert "Create and start" in text


def test_form__prompt_of_another_project__404(editor: Client, project: Project) -> None:
    other = make_config(versions=2)
    for config in (str(other.pk), "x"):
        assert editor.get(PATH, {"project": str(project.pk), "config": config}).status_code == 404


def test_form__evaluators__are_those_of_matched_samples(editor: Client, config: PromptConfig) -> None:
    assert "No evaluator has one yet." in shown(editor, config)
    evaluator = make_evaluator(config.project, name="<b>Accurate</b>")
    matched(config.project, evaluator)

    text = shown(editor, config)
    assert "&lt;b&gt;Accurate&lt;/b&gt;" in text
    refused = text_of(sent(editor, config, required_evaluators=[str(evaluator.pk)]))
    assert "Choose these evaluators above, too." in refused
    assert not Rollout.objects.exists()

    chosen = [str(evaluator.pk)]
    assert sent(editor, config, evaluators=chosen, required_evaluators=chosen).status_code == 302
    [entry] = entries_of(Rollout.objects.get())
    assert (entry.evaluator_id, entry.required, entry.action) == (evaluator.pk, True, None)


def test_form__judge_that_nobody_checked__warned_of_before_and_after_the_start(
    editor: Client, config: PromptConfig
) -> None:
    judge = make_evaluator(config.project, "judge", name="polite", criteria=[CRITERION], model="openai/gpt-4o")
    matched(config.project, judge, monthly_budget_usd=Decimal(10))

    assert "a judge that is not calibrated: it can hold the rollout, and not pass" in shown(editor, config)

    chosen = [str(judge.pk)]
    answer = sent(editor, config, evaluators=chosen, required_evaluators=chosen, action="start")
    assert answer.status_code == 302
    text = text_of(editor.get(answer["location"]))
    assert "polite@1 is required and cannot pass in this rollout" in text


def test_form__evaluator_without_a_matched_sample__is_refused(editor: Client, config: PromptConfig) -> None:
    text = text_of(sent(editor, config, evaluators=[str(make_evaluator(config.project).pk)]))
    assert "Select a valid choice." in text


def test_form__outcomes_and_a_goal__an_ab_test_of_one_day(editor: Client, config: PromptConfig) -> None:
    given = {"outcomes": "resolved, converted", "reversed_outcomes": "escalated", "goal": "bought", "gain": "2"}
    assert sent(editor, config, DEFAULT_STAGES, **given).status_code == 302
    rollout = Rollout.objects.get()
    found = [(one.score_name, one.worst, one.best, one.goal, one.margin) for one in entries_of(rollout)]
    assert found == [
        ("resolved", 0.0, 1.0, False, 0.1),
        ("converted", 0.0, 1.0, False, 0.1),
        ("escalated", 1.0, 0.0, False, 0.1),
        ("bought", 0.0, 1.0, True, 0.02),
    ]
    assert [stage.plan for stage in rollout.stages.all()] == list(TEST_STAGES)


def test_form__test_up_to_100_percent__is_refused(editor: Client, config: PromptConfig) -> None:
    text = text_of(sent(editor, config, goal="bought"))
    assert "An A/B test has one stage, below 100 %" in text


def test_form__thresholds_of_its_own__kept_and_priced_in_the_forecast(editor: Client, config: PromptConfig) -> None:
    given = {"fail_from_unanswered": "1", "margin_unanswered": "2", "fail_from_latency_p95": "1.1"}
    forecast = text_of(sent(editor, config, action="forecast", **given))
    assert "Unanswered, at 10 %: a target that is just as much worse as may fail is found after about" in forecast
    assert not Rollout.objects.exists()
    sent(editor, config, **given)
    thresholds = {"unanswered": {"fail_from": 0.01, "margin": 0.02}, "latency_p95": {"fail_from": 1.1}}
    assert Rollout.objects.get().policy["thresholds"] == thresholds


def test_form__threshold_that_nothing_could_decide__error_at_the_field(editor: Client, config: PromptConfig) -> None:
    text = text_of(sent(editor, config, fail_from_unanswered="3"))
    assert "between the two nothing is ever decided" in text
    assert not Rollout.objects.exists()
