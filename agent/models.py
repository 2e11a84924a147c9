from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from core.models import Project
from core.tenancy import ProjectManager

TITLE_CHARACTERS = 200
ACTOR_CHARACTERS = 200
NAME_CHARACTERS = 200
CALL_ID_CHARACTERS = 200
REQUEST_ID_CHARACTERS = 64


class Role(models.TextChoices):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class MessageState(models.TextChoices):
    COMPLETE = "complete"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Conversation(models.Model):
    """`run_id` and `run_until` are the lease of the chat that is answering now (see `agent.worker.leases`)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="conversations")
    title = models.CharField(max_length=TITLE_CHARACTERS, blank=True, default="")
    created_by = models.CharField(max_length=ACTOR_CHARACTERS, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    # Messages are counted here, under the lock of this row, so that two of them never get the same number.
    last_sequence = models.PositiveIntegerField(default=0, editable=False)
    run_id = models.UUIDField(null=True, editable=False)
    run_until = models.DateTimeField(null=True, editable=False)

    objects = ProjectManager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        indexes = [models.Index(fields=["project", "-updated_at", "-id"], name="conversation_by_time")]

    def __str__(self) -> str:
        return self.title or f"conversation {self.pk}"


class Message(models.Model):
    """A message, written once.

    `tool_calls` are an assistant's, in OpenAI's form. `tool_call_id`, `tool_name` and `is_error` belong to a tool's
    result. `reasoning` has the fields of an assistant's message that a provider needs back unchanged. `request_id`
    names the gateway's request that answered, `error` the reason why it broke off.
    """

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    sequence = models.PositiveIntegerField()
    role = models.CharField(max_length=9, choices=Role)
    content = models.TextField(blank=True, default="")
    tool_calls = models.JSONField(default=list, blank=True)
    tool_call_id = models.CharField(max_length=CALL_ID_CHARACTERS, blank=True, default="")
    tool_name = models.CharField(max_length=NAME_CHARACTERS, blank=True, default="")
    is_error = models.BooleanField(default=False)
    state = models.CharField(max_length=9, choices=MessageState, default=MessageState.COMPLETE)
    error = models.TextField(blank=True, default="")
    request_id = models.CharField(max_length=REQUEST_ID_CHARACTERS, blank=True, default="")
    page_context = models.JSONField(null=True, blank=True)
    reasoning = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["conversation_id", "sequence"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "sequence"], name="one_message_per_sequence"),
            models.CheckConstraint(condition=Q(sequence__gte=1), name="message_sequence_from_1"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.sequence} of {self.conversation_id}"


class Panel(models.Model):
    """Lists the chat's page in the admin. It has no table; `agent.panel.admin` shows it."""

    class Meta:
        managed = False
        default_permissions = ()
        verbose_name = "chat"
        verbose_name_plural = "ask the agent"

    def __str__(self) -> str:
        return "chat"
