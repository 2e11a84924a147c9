from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.safestring import SafeString
from rest_framework.exceptions import ValidationError

from analytics.models.reviews import QueueState, ReviewItem, ReviewQueue
from analytics.presenters import reviews
from analytics.presenters.requests import find_request
from analytics.presenters.reviewed import reviewed_conversation
from analytics.reviews import services
from analytics.reviews.due_labels import is_hidden
from analytics.reviews.errors import ItemNotFoundError
from analytics.reviews.rubric import choices_of, takes_any_number
from analytics.reviews.selectors import get_item, get_queue
from analytics.serializers.reviews import AssignmentSerializer, ReviewAnswerSerializer
from console.reviews.agreement_texts import figures_of
from console.reviews.labels import labels_address
from core.audit.actors import actor_name
from core.errors import ApplicationError
from core.http.exception_handler import translate
from core.roles import Right
from core.ui.formats import moment
from core.ui.marks import id_link, status
from core.ui.navigation import address_of
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table

_PER_PAGE = 20
_KINDS = {"open": "neutral", "done": "good", "skipped": "warn"}


class ReviewPage(Page):
    """Opening the page takes the next item for the person; `item` in the address names another one."""

    route = "reviews/<uuid:project_id>/<uuid:queue_id>/"
    name = "review"
    title = "Review"
    parent = "reviews"

    def __init__(self) -> None:
        self._item: ReviewItem | None = None
        self._is_chosen = False

    def record(self, visit: Visit, **route: Any) -> ReviewQueue:
        return get_queue(visit.project.pk, route["queue_id"])

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        queue = self.record(visit, **route)
        return _shown(visit, queue, self._chosen(visit, queue))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        queue = self.record(visit, **route)
        return _panels(visit, queue, self._chosen(visit, queue))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        queue, given = self.record(visit, **route), visit.request.POST
        try:
            query = _ACTIONS.get(given.get("action", ""), _score)(visit, queue)
        except (ApplicationError, ValidationError) as error:
            known = translate(error)
            return self._refused(visit, queue, known.message if known else "")
        return HttpResponseRedirect(visit.link("review", visit.project.pk, queue.pk, **query))

    def _refused(self, visit: Visit, queue: ReviewQueue, problem: str) -> HttpResponseBase:
        """Shows what was typed, and the next item if another person has this one."""
        item = self._named(queue, visit.request.POST.get("item", ""))
        if item is None or not services.is_free_for(item, visit.actor):
            item = self._chosen(visit, queue)
        context = _shown(visit, queue, item)
        typed = {"problem": problem, "reason": visit.request.POST.get("reason", "")}
        return self.render(visit, _panels(visit, queue, item), **context, **typed)

    def _chosen(self, visit: Visit, queue: ReviewQueue) -> ReviewItem | None:
        if not self._is_chosen:
            self._is_chosen = True
            named = visit.request.GET.get("item", "")
            self._item = self._named(queue, named) if named else self._next(visit, queue)
        return self._item

    def _named(self, queue: ReviewQueue, text: str) -> ReviewItem | None:
        try:
            return get_item(queue, UUID(text))
        except (ValueError, ItemNotFoundError):
            return None

    def _next(self, visit: Visit, queue: ReviewQueue) -> ReviewItem | None:
        if queue.state == QueueState.CLOSED or not visit.may(Right.EDIT):
            return None
        return services.claim_next(project_id=visit.project.pk, queue_id=queue.pk, actor=visit.actor)


def _score(visit: Visit, queue: ReviewQueue) -> dict[str, str]:
    given = visit.request.POST
    value, reason = given.get("choice", "") or given.get("value", ""), given.get("reason", "")
    field: dict[str, Any] = {"score_label": value} if queue.labels else {"score_value": _number(value)}
    body = ReviewAnswerSerializer(data={**field, "reason": reason})
    body.is_valid(raise_exception=True)
    item, _ = services.score_item(
        project_id=visit.project.pk,
        queue_id=queue.pk,
        item_id=_item_id(visit),
        answer=body.answer(),
        actor=visit.actor,
    )
    return {"last": str(item.pk)}


def _skip(visit: Visit, queue: ReviewQueue) -> dict[str, str]:
    item = services.skip_item(
        project_id=visit.project.pk, queue_id=queue.pk, item_id=_item_id(visit), actor=visit.actor
    )
    return {"last": str(item.pk)}


def _close(visit: Visit, queue: ReviewQueue) -> dict[str, str]:
    services.close_queue(project_id=visit.project.pk, queue_id=queue.pk, actor=visit.actor)
    messages.success(visit.request, "The queue is closed.")
    return {}


def _assign(visit: Visit, queue: ReviewQueue) -> dict[str, str]:
    count = visit.request.POST.get("count", "")
    given = {"assignee": visit.request.POST.get("assignee", ""), "count": _whole(count) if count else None}
    body = AssignmentSerializer(data=given, context={"project_id": visit.project.pk})
    body.is_valid(raise_exception=True)
    values = body.validated_data
    changed = services.assign_items(project_id=visit.project.pk, queue_id=queue.pk, actor=visit.actor, **values)
    assignment = f"assigned to {values['assignee']}" if values["assignee"] else "free again"
    messages.success(visit.request, f"{changed} open items are {assignment}.")
    return {}


_ACTIONS = {"skip": _skip, "close": _close, "assign": _assign}


def _shown(visit: Visit, queue: ReviewQueue, item: ReviewItem | None) -> dict[str, Any]:
    entry = reviews.queue(visit.project.pk, queue.pk)
    last = visit.request.GET.get("last", "")
    hidden = item is not None and is_hidden(item)
    return {
        "title": queue.name,
        "queue": entry,
        "item": item,
        "may_edit": visit.may(Right.EDIT),
        "may_answer": item is not None and visit.may(Right.EDIT) and queue.state == QueueState.OPEN,
        "choices": choices_of(queue),
        "takes_any_number": takes_any_number(queue),
        "request_address": "" if item is None or hidden else _request_address(visit, item),
        "dataset_address": visit.link_if_there("datasets", queue_id=str(queue.pk)) if visit.may(Right.EDIT) else "",
        "item_to_dataset": "" if hidden else _item_to_dataset(visit, item),
        "requests_address": _requests_address(visit, queue),
        "more_address": labels_address(visit, queue.evaluator_id) if queue.due_labels and queue.evaluator_id else "",
        "reviews_address": visit.link("reviews"),
        "own_address": visit.link("review", visit.project.pk, queue.pk),
        "last_address": visit.link("review", visit.project.pk, queue.pk, item=last) if last else "",
        "username": visit.person.get_username(),
    }


def _panels(visit: Visit, queue: ReviewQueue, item: ReviewItem | None) -> list[Panel]:
    panels = [
        Panel("agreement", "Agreement with judges", "reviews/agreement.html", partial(_agreement, visit, queue)),
        Panel.of_table("items", "Items", lambda: _items(visit, queue)),
    ]
    if item is None:
        return panels
    return [
        Panel("turns", "What was said", "reviews/turns.html", partial(reviewed_turns, visit, item)),
        *panels,
    ]


def _agreement(visit: Visit, queue: ReviewQueue) -> dict[str, Any]:
    found = reviews.agreement(visit.project.pk, queue.pk)
    return {
        "agreement": found,
        "people": list(figures_of(found["people"])) if found["people"] else [],
        "asks_two_people": queue.due_labels,
        "lines": [(row["evaluator_type"], list(figures_of(row))) for row in found["evaluators"]],
    }


def _items(visit: Visit, queue: ReviewQueue) -> Table:
    numbered = Numbered(visit.request.GET, _PER_PAGE)
    listing = reviews.items(queue, numbered.page)
    return Table(
        caption="Items of the queue, in their order",
        columns=[
            Column("position", "Item", cell=lambda row: row["position"]),
            Column("state", "State", cell=lambda row: status(row["state"], _KINDS[row["state"]])),
            Column("request", "Request", cell=partial(_request_link, visit)),
            Column("created", "Made", cell=lambda row: moment(row["request_created_at"])),
            Column("assignee", "For", cell=lambda row: row["assignee"] or "everybody"),
            Column("reviewed_by", "Reviewed by", cell=lambda row: actor_name(row["reviewed_by"])),
        ],
        rows=listing.results,
        empty=Empty("The requests of this queue are deleted or past their retention."),
        key=lambda row: visit.link("review", visit.project.pk, queue.pk, item=row["id"]),
        **numbered.links(listing.count),
    )


def _requests_address(visit: Visit, queue: ReviewQueue) -> str:
    return "" if queue.due_labels else visit.link_if_there("analytics_requests_changelist", **queue.filter)


def _request_link(visit: Visit, row: Mapping[str, Any]) -> SafeString | str:
    if row["request_id"] is None:
        return "hidden until it is labelled"
    return id_link(visit.link("analytics_requests_detail", visit.project.pk, row["request_id"]), row["request_id"])


def _item_to_dataset(visit: Visit, item: ReviewItem | None) -> str:
    if item is None or not visit.may(Right.EDIT):
        return ""
    return visit.link_if_there("datasets", request_id=str(item.request_id))


def _request_address(visit: Visit, item: ReviewItem) -> str:
    return visit.link("analytics_requests_detail", visit.project.pk, item.request_id)


def _item_id(visit: Visit) -> UUID:
    try:
        return UUID(visit.request.POST.get("item", ""))
    except ValueError:
        raise ItemNotFoundError from None


def _number(text: str) -> float | str | None:
    """Returns text that is not a number unchanged, so that the serializer names the field."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _whole(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def reviewed_turns(visit: Visit, item: ReviewItem) -> dict[str, Any]:
    """Returns the context of the panel: the last turns of the request, and the answer. While the request is hidden, it
    has no link to it. Raises NotFoundError and the errors of the store."""
    row = find_request(visit.project.pk, item.request_id)
    shown = reviewed_conversation(item, row) if visit.sees_content else None
    hidden = is_hidden(item)
    all_url = "" if hidden else visit.link("analytics_requests_detail", visit.project.pk, item.request_id)
    return {
        "row": row,
        "is_hidden": hidden,
        "has_payload": shown is not None and shown["turns"] is not None,
        "omitted": shown["omitted_turns"] if shown else 0,
        "turns": (shown["turns"] or []) if shown else [],
        "image_base": address_of("review", visit.project.pk, item.queue_id) + f"{item.pk}/images/",
        "all_url": all_url,
    }
