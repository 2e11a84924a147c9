"""One chat at a time in a conversation, over all workers: a lease in its row, taken by a conditional update.

It runs out by itself: a worker that was killed does not close a conversation for ever.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from agent.models import Conversation


def take_lease(project_id: UUID, conversation_id: UUID, run_id: UUID) -> bool:
    """False when the conversation is not there or another run holds it."""
    now = timezone.now()
    free = Conversation.objects.for_project(project_id).filter(Q(run_id=None) | Q(run_until__lte=now))
    return free.filter(pk=conversation_id).update(run_id=run_id, run_until=now + _held_for()) == 1


def renew_lease(conversation_id: UUID, run_id: UUID) -> bool:
    """False when the conversation was deleted, or the lease ran out and another run took it."""
    held = Conversation.objects.filter(pk=conversation_id, run_id=run_id)
    return held.update(run_until=timezone.now() + _held_for()) == 1


def release_lease(conversation_id: UUID, run_id: UUID) -> None:
    Conversation.objects.filter(pk=conversation_id, run_id=run_id).update(run_id=None, run_until=None)


def _held_for() -> timedelta:
    return timedelta(seconds=settings.AGENT_LEASE_SECONDS)
