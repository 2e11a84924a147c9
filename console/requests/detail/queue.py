from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms

from analytics.models.reviews import QueueState
from analytics.reviews.errors import QueueNotFoundError
from analytics.reviews.selectors import list_queues
from analytics.reviews.services import add_item
from core.roles import Right
from core.ui.pages import Visit

_MAX_QUEUES = 100


class _QueueForm(forms.Form):
    queue_id = forms.UUIDField()


def queue_context(visit: Visit) -> Mapping[str, Any]:
    if not visit.may(Right.EDIT):
        return {}
    queues = list_queues(visit.project.pk, QueueState.OPEN).values_list("pk", "name")[:_MAX_QUEUES]
    return {"may_queue": True, "queues": list(queues), "reviews": visit.link_if_there("reviews")}


def add_to_queue(visit: Visit, request_id: UUID) -> str:
    form = _QueueForm(visit.request.POST)
    if not form.is_valid():
        raise QueueNotFoundError
    queue_id = form.cleaned_data["queue_id"]
    item, is_new = add_item(project_id=visit.project.pk, queue_id=queue_id, request_id=request_id, actor=visit.actor)
    done = "is in the review queue now" if is_new else "was in the review queue already"
    return f"The request {done}: {item.queue.name}."
