from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils import timezone

from analytics.evaluators.definitions import Definition, Judge
from analytics.evaluators.selectors import KnownVersion, get_version, list_evaluators
from analytics.models.evaluators import EvaluatorState
from analytics.models.reviews import QUEUE_NAME_CHARACTERS, QueueState, ReviewQueue, RubricKind
from analytics.queries.request_filters import RequestFilter
from analytics.reviews.due_labels import count_free_labels
from analytics.reviews.selectors import list_queues, progress_of
from analytics.reviews.services import MAX_ITEMS, NewQueue, create_queue
from analytics.serializers.reviews import DEFAULT_MAXIMUM, DEFAULT_MINIMUM
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.pages import Visit

DEFAULT_COUNT = 20

_KINDS = ((RubricKind.BOOLEAN, "Good or bad"), (RubricKind.NUMBER, "1 to 5, the best"))


class LabelsForm(forms.Form):
    count = forms.IntegerField(label="How many", min_value=1, max_value=MAX_ITEMS)
    kind = forms.ChoiceField(label="Answer with", choices=_KINDS)


class ReviewLabelsPage(EditPage[KnownVersion | None, LabelsForm]):
    """`evaluator_id` and `count` in the address name the evaluator and the number of labels. Without an evaluator the
    page lists those that have labels due."""

    route = "reviews/labels/"
    name = "review_labels"
    title = "Label answers"
    parent = "reviews"
    right = Right.EDIT
    key = "evaluator_id"

    def find(self, visit: Visit, given: str) -> KnownVersion:
        return get_version(visit.project.pk, UUID(given))

    def form(self, visit: Visit, record: KnownVersion | None, data: Any = None) -> LabelsForm:
        count = visit.request.GET.get("count", "")
        initial = {
            "count": int(count) if count.isascii() and count.isdigit() else DEFAULT_COUNT,
            "kind": _kind_of(record.definition) if record else None,
        }
        return LabelsForm(data, initial=initial)

    def save(self, visit: Visit, record: KnownVersion | None, form: LabelsForm) -> HttpResponseBase:
        if record is None:
            raise Http404("There is no such evaluator in this project.")
        new = _new_queue(record, form.cleaned_data["kind"], form.cleaned_data["count"])
        row = create_queue(project_id=visit.project.pk, new=new, actor=visit.actor)
        said = f"The queue {row.name} has {row.items.count()} answers."
        return visit.done(said, visit.link("review", visit.project.pk, row.pk))

    def shown(self, visit: Visit, record: KnownVersion | None, form: LabelsForm) -> Mapping[str, Any]:
        if record is None:
            return {"evaluators": list(_with_labels(visit)), "list_address": visit.link("reviews")}
        return {
            "list_address": visit.link("reviews"),
            "free": count_free_labels(visit.project.pk, timezone.now()).get(record.evaluator_id, 0),
            "queues": list(_open_queues(visit, record.evaluator_id)),
            "own_address": visit.link("review_labels", evaluator_id=str(record.evaluator_id)),
            "evaluator_address": visit.link_if_there("evaluator", record.evaluator_id),
        }


def labels_address(visit: Visit, evaluator_id: UUID) -> str:
    if not visit.may(Right.EDIT):
        return ""
    return visit.link_if_there("review_labels", evaluator_id=str(evaluator_id), count=str(DEFAULT_COUNT))


def _open_queues(visit: Visit, evaluator_id: UUID) -> list[dict[str, Any]]:
    rows = list_queues(visit.project.pk, QueueState.OPEN).filter(due_labels=True, evaluator_id=evaluator_id)
    progress = progress_of(row.pk for row in rows)
    return [_queue(visit, row, left) for row in rows if (left := progress[row.pk]["open"])]


def _queue(visit: Visit, row: ReviewQueue, left: int) -> dict[str, Any]:
    return {"name": row.name, "open": left, "address": visit.link("review", visit.project.pk, row.pk)}


def _with_labels(visit: Visit) -> list[dict[str, Any]]:
    free = count_free_labels(visit.project.pk, timezone.now())
    rows = list_evaluators(visit.project.pk).filter(state=EvaluatorState.ACTIVE, pk__in=free)
    return [
        {
            "name": row.name,
            "free": free[row.pk],
            "address": visit.link("review_labels", evaluator_id=str(row.pk)),
        }
        for row in rows
    ]


def _kind_of(definition: Definition) -> RubricKind:
    """People grade if the evaluator has more than two grades; else they answer yes or no."""
    has_grades = isinstance(definition, Judge) and any(len(one.labels) > 2 for one in definition.criteria)
    return RubricKind.NUMBER if has_grades else RubricKind.BOOLEAN


def _new_queue(version: KnownVersion, kind: str, count: int) -> NewQueue:
    is_number = kind == RubricKind.NUMBER
    made = f", {timezone.now():%Y-%m-%d %H:%M:%S} UTC"
    name = f"Labels for {version.name}"
    return NewQueue(
        name=name[: QUEUE_NAME_CHARACTERS - len(made)] + made,
        parameters={},
        filters=RequestFilter(),
        score_name=version.name,
        kind=kind,
        minimum=DEFAULT_MINIMUM if is_number else None,
        maximum=DEFAULT_MAXIMUM if is_number else None,
        sample_size=count,
        instructions=_instructions(version.definition),
        evaluator_id=version.evaluator_id,
        due_labels=True,
    )


def _instructions(definition: Definition) -> str:
    """Returns the judge's criteria, so that people look at the same."""
    if not isinstance(definition, Judge):
        return ""
    return "\n".join(f"{one.name}: {one.meaning}" for one in definition.criteria)[:10_000]
