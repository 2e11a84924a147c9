"""The lease of a conversation: one chat at a time over all workers, taken in its row by a conditional update.

A lease expires, so a worker that was killed does not lock a conversation permanently.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from agent.models import Conversation


def take_lease(project_id: UUID, conversation_id: UUID, run_id: UUID) -> bool:
    """Returns False if the conversation does not exist or another run holds it."""
    now = timezone.now()
    free = Conversation.objects.for_project(project_id).filter(Q(run_id=None) | Q(run_until__lte=now))
    return free.filter(pk=conversation_id).update(run_id=run_id, run_until=now + _held_for()) == 1


def renew_lease(conversation_id: UUID, run_id: UUID) -> bool:
    held = Conversation.objects.filter(pk=conversation_id, run_id=run_id)
    return held.update(run_until=timezone.now() + _held_for()) == 1


def release_lease(conversation_id: UUID, run_id: UUID) -> None:
    Conversation.objects.filter(pk=conversation_id, run_id=run_id).update(run_id=None, run_until=None)


def _held_for() -> timedelta:
    return timedelta(seconds=settings.AGENT_LEASE_SECONDS)
