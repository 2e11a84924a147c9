"""A project in which every tool finds something, with a marker that no other project has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status as SpanStatus
from rest_framework.test import APIClient

from agent.tools import registry
from agent.tools.base import ToolContext, ToolOutcome
from agent.tools.scopes import Granted
from analytics.models import Dataset
from analytics.request_log.record import Outcome, SpoolEntry
from analytics.scores.services import record_feedback
from analytics.scores.sync.run import copy_due
from core.models import Project
from core.roles import PROJECT_RIGHTS
from core.teams.services import TEAMS
from gateway.experiments.services import end_experiment
from gateway.model_groups.services import MODEL_GROUPS
from gateway.models import ExperimentScore
from gateway.project_settings.settings import AGENT_SCOPES
from gateway.tables.experiment import ExperimentState
from integrations.access.credentials import store_extra
from integrations.pricing.services import set_price
from integrations.services import IntegrationChange, add_integration
from prompts.labels import set_label
from prompts.models import PromptConfig
from rollouts.models import Rollout
from tests.analytics.telemetry.sending import Sender, log, span
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project
from tests.factories.datasets import make_dataset
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_online_evaluation, make_tasks
from tests.factories.prompts import make_config, make_version
from tests.factories.reviews import make_queue
from tests.factories.rollouts import make_rollout
from tests.factories.scores import make_score
from tests.factories.settings import make_settings
from tests.gateway.experiments.stored import evaluator, make_experiment, pair

# Fields that hold the moment of the call, or the range before one that goes on.
_OF_THE_MOMENT = {"generated_at", "resets_in_seconds", "start", "previous", "range_before"}
_WAITING = "shipping_behind"

SESSIONS = 3
PER_SESSION = 4


@dataclass(frozen=True)
class World:
    marker: str
    project: Project
    now: datetime
    config: PromptConfig
    rollout: Rollout
    request_ids: list[str]
    api: APIClient
    secret: str

    @property
    def session_id(self) -> str:
        return f"{self.marker}-session-0"

    @property
    def queue_id(self) -> str:
        return str(self.project.review_queues.values_list("pk", flat=True)[0])

    @property
    def evaluator_id(self) -> str:
        return str(self.project.evaluators.values_list("pk", flat=True)[0])

    @property
    def evaluation_id(self) -> str:
        return str(self.project.online_evaluations.values_list("pk", flat=True)[0])

    @property
    def dataset_id(self) -> str:
        return str(self.project.datasets.values_list("pk", flat=True)[0])

    @property
    def experiment_id(self) -> str:
        return str(self.project.experiments.values_list("pk", flat=True)[0])

    @property
    def model(self) -> str:
        return f"{self.marker}-model"

    @property
    def version_ids(self) -> list[UUID]:
        return list(self.config.versions.order_by("number").values_list("pk", flat=True))

    @property
    def context(self) -> ToolContext:
        return ToolContext(self.project.pk, Granted(frozenset(AGENT_SCOPES), frozenset(PROJECT_RIGHTS)), self.now)

    def call(self, name: str, arguments: str | Mapping[str, Any] = "") -> ToolOutcome:
        return registry.call(self.context, name, arguments)

    def ask(self, name: str, **arguments: Any) -> Any:
        outcome = self.call(name, json.dumps(arguments))
        assert not outcome.is_error, outcome.content
        return json.loads(outcome.content)

    def get(self, path: str, **query: Any) -> Any:
        answer = self.api.get(path, query)
        assert answer.status_code == 200, answer.content
        return answer.json()

    @property
    def names(self) -> list[str]:
        """Returns all ids and chosen names by which arguments can refer to this project."""
        ids = [*self.version_ids, *self.request_ids, self.evaluator_id, self.dataset_id, self.experiment_id]
        ids.append(self.evaluation_id)
        found = [self.project.pk, self.config.pk, self.rollout.pk, *ids]
        texts = [self.project.name, self.config.name, self.rollout.name, self.session_id, self.model]
        texts += [f"{self.marker}-user", f"{self.marker}-score", f"{self.marker}_code", f"{self.marker}-requested"]
        return [*map(str, found), *texts]


def make_world(spool: Path, marker: str) -> World:
    now = datetime.now(UTC)
    project = make_project(f"{marker}-project")
    secret = f"sk-{marker}-secret-0123456789-xqzv"
    _configure(project, marker, secret)
    config = make_config(project, f"{marker}-config")
    for number in (1, 2, 3):
        make_version(config, f"You are {marker}.\nAnswer in {number} words.", commit_message=f"{marker} {number}")
    config.refresh_from_db()
    set_label(
        project_id=project.pk,
        config_id=config.pk,
        name="production",
        number=1,
        actor=f"{marker}-operator",
        is_administrator=True,
    )
    rollout = make_rollout(config, started=True, name=f"{marker}-rollout")
    entries = [_entry(project, marker, now, number, config, rollout) for number in range(SESSIONS * PER_SESSION)]
    store(spool, *entries)
    request_ids = [entry.record.request_id for entry in entries]
    _judge(project, marker, request_ids)
    dataset = make_dataset(project, items=2, about=marker, name=f"{marker}-set")
    _try(project, marker, dataset)
    make_queue(project, request_ids=request_ids[:2], name=f"{marker}-queue", score_name=f"{marker}-score")
    scorer = make_evaluator(project, name=f"{marker}-evaluator", value=marker)
    make_tasks(make_online_evaluation(scorer), due=1, done=2, failed=1)
    _trace(project, marker)
    return World(marker, project, now, config, rollout, request_ids, _client(project), secret)


def _configure(project: Project, marker: str, secret: str) -> None:
    make_settings(
        project,
        monthly_budget_usd=Decimal(100),
        session_budget_usd=Decimal(5),
        preferred_models=[f"{marker}-model"],
        alert_webhook_url=f"https://hooks.example/{secret}",
        alert_emails=[f"{secret}@{marker}.example"],
        guardrails={"trust_mode": "monitor", "blocked_input_topics": [f"{marker} topic"]},
    )
    row = add_integration(project_id=project.pk, provider="openai", change=IntegrationChange(secret=secret))
    # No service would store these: whatever a row holds, no tool may show its secrets.
    store_extra(row, {"access_key_id": secret})
    row.options, row.base_url = {"api_version": f"{marker}-version"}, f"https://{marker}.example/v1?key={secret}"
    row.save()
    TEAMS.create(project.pk, {"name": f"{marker}-team", "monthly_budget_usd": Decimal(10)})
    members = [{"model": f"{marker}-model", "weight": 1}]
    MODEL_GROUPS.create(project.pk, {"name": f"{marker}-fast", "strategy": "ordered", "members": members})
    costs = {"input_cost_per_1m": Decimal(1), "output_cost_per_1m": Decimal("2.5")}
    set_price(project_id=project.pk, provider="openai", model=f"{marker}-model", costs=costs, actor="test")


def _entry(
    project: Project, marker: str, now: datetime, number: int, config: PromptConfig, rollout: Rollout
) -> SpoolEntry:
    failed = number % 4 == 1
    at = now - timedelta(hours=number * 9)
    values: dict[str, Any] = {
        "project_id": str(project.pk),
        "ts": int(at.timestamp() * 1_000_000),
        "team_id": project.teams.get().pk,
        "session_id": f"{marker}-session-{number // PER_SESSION}",
        "user_id": f"{marker}-user",
        "model": f"{marker}-model" if number % 3 else f"{marker}-other-model",
        "requested_model": f"{marker}-requested",
        "cost_usd": f"{Decimal(number + 1) / 7:.10f}",
        "latency_ms": 100 * (number + 1),
        "ttft_ms": 30,
        "prompt_config_id": str(config.pk),
        "prompt_version": 1 + number % 2,
        "prompt_name": config.name,
        "attributes": {"guardrails": json.dumps([{"rule": f"{marker} rule"}])},
        # The requests come after the rollout's start, so that it counts them.
        **({"rollout_id": str(rollout.pk), "variant": "target", "alloc_unit": number + 1} if not number else {}),
    }
    if failed:
        values |= {
            "outcome": Outcome.ERROR,
            "status_code": 503,
            "error_type": "service_unavailable_error",
            "error_code": f"{marker}_code",
            "error_message": f"{marker} did not answer",
        }
    request = {"messages": [{"role": "user", "content": f"{marker} asks number {number} about refunds"}]}
    response = {"choices": [{"message": {"role": "assistant", "content": f"{marker} answers {number}"}}]}
    return make_entry(json.dumps(request).encode(), json.dumps(response).encode(), **values)


def _judge(project: Project, marker: str, request_ids: list[str]) -> None:
    for number, request_id in enumerate(request_ids[:3]):
        make_score(
            project,
            request_id=request_id,
            score_name=f"{marker}-score",
            score_value=60.0 + number,
            reason=f"{marker} said so",
            evaluator_type="human",
        )
    record_feedback(
        project_id=project.pk, session_id=f"{marker}-session-0", score=4, text=f"{marker} was good", actor="test"
    )
    copy_due()


def _try(project: Project, marker: str, dataset: Dataset) -> None:
    answer = {"answer": {"role": "assistant", "content": f"{marker} answers"}}
    rows = [pair(1.0, 1.0, answer=answer), pair(0.0, 1.0, answer=answer, tags=[f"{marker}-tag"])]
    values = {"dataset_id": dataset.pk, "dataset_name": dataset.name, "dataset_version": dataset.version}
    experiment = make_experiment(project, rows, [evaluator(f"{marker}-evaluator")], **values)
    experiment.items.update(preview=f"{marker} asks")
    ExperimentScore.objects.filter(answer__item__experiment=experiment).update(detail=f"{marker} reason")
    end_experiment(experiment.pk, ExperimentState.COMPLETED)


def _trace(project: Project, marker: str) -> None:
    sender = Sender(make_key(project, scopes=["gateway"])[1])
    attributes = {"gen_ai.session_id": f"{marker}-session-0", "shop.note": f"{marker} attribute"}
    broken = SpanStatus(code=SpanStatus.STATUS_CODE_ERROR, message=f"{marker} broke")
    sender.traces(span(1, attributes, name=f"{marker} span"), span(2, attributes, status=broken))
    failed = log(2, attributes, severity_text="ERROR", body=AnyValue(string_value=f"{marker} failed"))
    sender.logs(log(1, attributes, body=AnyValue(string_value=f"{marker} line")), failed)


def _client(project: Project) -> APIClient:
    client = APIClient()
    client.credentials(
        HTTP_AUTHORIZATION=f"Bearer {make_key(project, ['manage'])[1]}", HTTP_X_PROJECT_ID=str(project.pk)
    )
    return client


def lasting(value: Any) -> Any:
    """Leaves out of an answer what belongs to the moment of the call."""
    if isinstance(value, dict):
        return {name: lasting(item) for name, item in value.items() if name not in _OF_THE_MOMENT}
    if isinstance(value, list):
        # What waits in the spools of the whole machine is counted in seconds.
        return [lasting(item) for item in value if not (isinstance(item, dict) and item.get("kind") == _WAITING)]
    return value
