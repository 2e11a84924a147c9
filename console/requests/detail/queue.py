"""The form of a request's page that adds the request to a review queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages

from analytics.models.reviews import QueueState
from analytics.reviews.errors import QueueNotFoundError
from analytics.reviews.selectors import list_queues
from analytics.reviews.services import add_item
from core.errors import ApplicationError
from core.roles import Right
from core.ui.pages import Visit

_MAX_QUEUES = 100


class _QueueForm(forms.Form):
    queue_id = forms.UUIDField()


def queue_context(visit: Visit) -> Mapping[str, Any]:
    """Returns the latest open queues, for a person who may add a request to them."""
    if not visit.may(Right.EDIT):
        return {}
    queues = list_queues(visit.project.pk, QueueState.OPEN).values_list("pk", "name")[:_MAX_QUEUES]
    return {"may_queue": True, "queues": list(queues), "reviews": visit.link_if_there("reviews")}


def add_to_queue(visit: Visit, request_id: UUID) -> None:
    """Adds the request to the chosen queue, and leaves a message about it."""
    form, actor = _QueueForm(visit.request.POST), visit.actor
    try:
        if not form.is_valid():
            raise QueueNotFoundError
        queue_id = form.cleaned_data["queue_id"]
        item, is_new = add_item(project_id=visit.project.pk, queue_id=queue_id, request_id=request_id, actor=actor)
    except ApplicationError as error:
        messages.error(visit.request, error.message)
    else:
        done = "is in the review queue now" if is_new else "was in the review queue already"
        messages.success(visit.request, f"The request {done}: {item.queue.name}.")
