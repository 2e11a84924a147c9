"""The page that makes a queue of the labels that an evaluator has due, such as of 20 more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone

from analytics.evaluators.definitions import Definition, Judge
from analytics.evaluators.errors import EvaluatorNotFoundError
from analytics.evaluators.selectors import KnownVersion, get_version, list_evaluators
from analytics.models.evaluators import EvaluatorState
from analytics.models.reviews import QUEUE_NAME_CHARACTERS, QueueState, ReviewQueue, RubricKind
from analytics.queries.request_filters import RequestFilter
from analytics.reviews.due_labels import count_free_labels
from analytics.reviews.selectors import list_queues, progress_of
from analytics.reviews.services import MAX_ITEMS, NewQueue, create_queue
from analytics.serializers.reviews import DEFAULT_MAXIMUM, DEFAULT_MINIMUM
from core.errors import ApplicationError
from core.roles import Right
from core.ui.pages import Page, Visit
from core.ui.registry import register_page

DEFAULT_COUNT = 20

_KINDS = ((RubricKind.BOOLEAN, "Good or bad"), (RubricKind.NUMBER, "1 to 5, the best"))


class LabelsForm(forms.Form):
    """How many of the labels that are due, and by which answers."""

    count = forms.IntegerField(label="How many", min_value=1, max_value=MAX_ITEMS)
    kind = forms.ChoiceField(label="Answer with", choices=_KINDS)


@register_page
class ReviewLabelsPage(Page):
    """`evaluator_id` in the address names the evaluator, and `count` how many labels; without an evaluator the page
    lists those that have labels due."""

    route = "reviews/labels/"
    name = "review_labels"
    title = "Label answers"
    template = "reviews/labels.html"
    parent = "reviews"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        version = _version(visit)
        if version is None:
            return {"evaluators": list(_with_labels(visit)), "reviews_address": visit.link("reviews")}
        count = visit.request.GET.get("count", "")
        initial = {
            "count": int(count) if count.isascii() and count.isdigit() else DEFAULT_COUNT,
            "kind": _kind_of(version.definition),
        }
        return _shown(visit, version, LabelsForm(initial=initial))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        version, form = _version(visit), LabelsForm(visit.request.POST)
        if version is None:
            raise Http404("There is no such evaluator in this project.")
        if form.is_valid():
            new = _new_queue(version, form.cleaned_data["kind"], form.cleaned_data["count"])
            try:
                row = create_queue(project_id=visit.project.pk, new=new, actor=visit.actor)
            except ApplicationError as error:
                form.add_error(None, error.message)
            else:
                messages.success(visit.request, f"The queue {row.name} has {row.items.count()} answers.")
                return HttpResponseRedirect(visit.link("review", visit.project.pk, row.pk))
        return self.render(visit, (), **_shown(visit, version, form))


def labels_address(visit: Visit, evaluator_id: UUID) -> str:
    """Returns where to label more answers; empty for those who may not."""
    if not visit.may(Right.EDIT):
        return ""
    return visit.link_if_there("review_labels", evaluator_id=str(evaluator_id), count=str(DEFAULT_COUNT))


def _shown(visit: Visit, version: KnownVersion, form: LabelsForm) -> dict[str, Any]:
    project_id = visit.project.pk
    return {
        "evaluator": version,
        "form": form,
        "free": count_free_labels(project_id, timezone.now()).get(version.evaluator_id, 0),
        "queues": list(_open_queues(visit, version.evaluator_id)),
        "may_edit": visit.may(Right.EDIT),
        "reviews_address": visit.link("reviews"),
        "own_address": visit.link("review_labels", evaluator_id=str(version.evaluator_id)),
        "evaluator_address": visit.link_if_there("evaluator", version.evaluator_id),
    }


def _version(visit: Visit) -> KnownVersion | None:
    named = visit.request.GET.get("evaluator_id", "")
    if not named:
        return None
    try:
        return get_version(visit.project.pk, UUID(named))
    except (ValueError, EvaluatorNotFoundError):
        raise Http404("There is no such evaluator in this project.") from None


def _open_queues(visit: Visit, evaluator_id: UUID) -> list[dict[str, Any]]:
    rows = list_queues(visit.project.pk, QueueState.OPEN).filter(due_labels=True, evaluator_id=evaluator_id)
    progress = progress_of(row.pk for row in rows)
    return [_queue(visit, row, progress[row.pk].open) for row in rows if row.pk in progress and progress[row.pk].open]


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
    """Returns how people answer like the evaluator: by grades where it has more than two of them."""
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
    """Returns what a judge looks at, for people to look at the same."""
    if not isinstance(definition, Judge):
        return ""
    return "\n".join(f"{one.name}: {one.meaning}" for one in definition.criteria)[:10_000]
