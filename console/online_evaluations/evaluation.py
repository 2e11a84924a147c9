from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.http.response import HttpResponseBase

from analytics.models import OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState
from analytics.online_evaluations.selectors import (
    LabelCounts,
    TaskCounts,
    get_online_evaluation,
    progress_of,
    scoring_number_of,
)
from console.online_evaluations.forms import ChangeForm, filter_text
from console.online_evaluations.words import missing_in_words, oldest_in_words, spent_in_words
from core.audit.actors import actor_name
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import moment, money, number, share
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel
from gateway.evaluations import services

_REFRESH_SECONDS = 30


class OnlineEvaluationPage(EditPage[OnlineEvaluation, ChangeForm]):
    route = "online-evaluations/<uuid:project_id>/<uuid:evaluation_id>/"
    name = "online_evaluation"
    title = "Online evaluation"
    parent = "online_evaluations"
    right = Right.EDIT
    saves = ("", "change")
    form_class = ChangeForm

    def record(self, visit: Visit, **route: Any) -> OnlineEvaluation:
        return get_online_evaluation(visit.project.pk, route["evaluation_id"])

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [
            Panel(
                "figures",
                "What became of the answers",
                "online_evaluations/figures.html",
                lambda: _figures(visit, self.record(visit, **route)),
                refresh_seconds=_REFRESH_SECONDS,
            )
        ]

    def save(self, visit: Visit, record: OnlineEvaluation, form: ChangeForm) -> HttpResponseBase:
        return self._change(visit, record, form.values, "Saved. Samples that were taken stay.")

    def shown(self, visit: Visit, record: OnlineEvaluation, form: ChangeForm) -> Mapping[str, Any]:
        return {
            "title": record.evaluator.name,
            "mark": status(record.state),
            "is_active": record.state == EvaluationState.ACTIVE,
            "number": scoring_number_of(record),
            "is_newest": record.version_id is None,
            "rate": share(record.rate),
            "matched": record.matched,
            "filter": filter_text(record.filter),
            "made_by": actor_name(record.created_by),
            "made_at": moment(record.created_at),
            "evaluator_address": visit.link_if_there("evaluator", record.evaluator_id),
            "own_address": self.address(visit, record),
        }

    def address(self, visit: Visit, record: OnlineEvaluation) -> str:
        return visit.link(self.name, visit.project.pk, record.pk)

    def do_pause(self, visit: Visit, record: OnlineEvaluation) -> HttpResponseBase:
        said = "Paused: no sample is taken, and what is due is skipped."
        return self._change(visit, record, {"state": EvaluationState.PAUSED}, said)

    def do_resume(self, visit: Visit, record: OnlineEvaluation) -> HttpResponseBase:
        said = "Resumed: answers to requests that arrive from now on are scored."
        return self._change(visit, record, {"state": EvaluationState.ACTIVE}, said)

    def do_delete(self, visit: Visit, record: OnlineEvaluation) -> HttpResponseBase:
        services.delete_online_evaluation(project_id=visit.project.pk, evaluation_id=record.pk, actor=visit.actor)
        return visit.done("Deleted. Its scores stay.", visit.link("online_evaluations"))

    def _change(self, visit: Visit, record: OnlineEvaluation, values: Mapping[str, Any], said: str) -> HttpResponseBase:
        services.change_online_evaluation(
            project_id=visit.project.pk, evaluation_id=record.pk, values=values, actor=visit.actor
        )
        return visit.done(said, self.address(visit, record))


def _figures(visit: Visit, row: OnlineEvaluation) -> Mapping[str, Any]:
    found = progress_of(row)
    money_of = [
        ("Spent this month", spent_in_words(row, found)),
        ("Reserved for what is being judged", money(found.reserved_usd)),
        ("Cost of the last 24 hours", money(found.last_day_usd)),
    ]
    oldest = found.oldest_due_at
    return {
        "kept": list(_counts(found.tasks)),
        "hour": list(_counts(found.last_hour)),
        "labels": list(_labels(found.labels)) if row.label_share is not None or found.labels["sampled"] else [],
        "labels_address": _labels_address(visit, row),
        "money": money_of if row.monthly_budget_usd is not None or found.spent_usd else [],
        "oldest": "" if oldest is None else oldest_in_words(oldest),
        "sampled_until": moment(row.sampled_until),
    }


def _labels_address(visit: Visit, row: OnlineEvaluation) -> str:
    return visit.link_if_there("review_labels", evaluator_id=str(row.evaluator_id), count="20")


def _labels(labels: LabelCounts) -> Iterator[tuple[str, str]]:
    yield "To be labelled", number(labels["sampled"])
    yield "Due", number(labels["due"])
    yield "Given", number(labels["given"])
    yield "Missing", number(labels["missing"])


def _counts(counts: TaskCounts) -> Iterator[tuple[str, str]]:
    yield "Sampled", number(counts["sampled"])
    yield "Due", number(counts["due"])
    yield "Done", number(counts["done"])
    yield "Missing", missing_in_words(counts)
