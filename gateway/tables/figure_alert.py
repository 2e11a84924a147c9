from __future__ import annotations

import uuid
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from core.models import Project
from core.tenancy import ProjectManager
from rollouts.models import Rollout

MAX_CHANNELS = 20
MAX_ALERTS = 100
MAX_CHANNELS_OF_ALERT = 5
CHANNEL_NAME_CHARACTERS = 100
ALERT_NAME_CHARACTERS = 100
MIN_WINDOW_MINUTES, MAX_WINDOW_MINUTES = 5, 7 * 24 * 60
MIN_REPEAT_MINUTES = 5
_OF_PEOPLE = frozenset({"user_id", "session_id"})


class AlertChannel(models.Model):
    """Addresses of webhooks hold tokens: they are stored encrypted, and only their host is shown."""

    class Kind(models.TextChoices):
        WEBHOOK = "webhook", "Webhook, signed"
        SLACK = "slack", "Slack, Mattermost or Discord"
        EMAIL = "email", "E-mail"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="alert_channels")
    name = models.CharField(max_length=CHANNEL_NAME_CHARACTERS)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    # A token of core.encryption.fernet; empty for e-mail.
    encrypted_url = models.TextField(blank=True, default="", editable=False)
    emails = models.JSONField(default=list, blank=True)
    # Alerts of the budget and of rollouts at 100 % go there too.
    receives_project_alerts = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    encrypted_fields = ("encrypted_url",)

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_alert_channel_per_name")]

    def __str__(self) -> str:
        return self.name


class FigureAlert(models.Model):
    """An alert on a figure of a project. `query` is a figure with its filters, as `analytics.figures` stores it.

    `threshold` is in the unit of the figure; for a change it is in percent, against the same window seven days before.
    `state` is what the latest look found and `told_state` what its receivers know: they differ while an alert is
    silenced.
    """

    class Condition(models.TextChoices):
        ABOVE = "above", "is above"
        BELOW = "below", "is below"
        RISES = "rises_by_percent", "is above last week by percent"
        FALLS = "falls_by_percent", "is below last week by percent"

    class State(models.TextChoices):
        OK = "ok", "ok"
        FIRING = "firing", "firing"
        NO_DATA = "no_data", "no data"
        BROKEN = "broken", "broken"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="figure_alerts")
    name = models.CharField(max_length=ALERT_NAME_CHARACTERS)
    query = models.JSONField()
    condition = models.CharField(max_length=20, choices=Condition.choices)
    threshold = models.FloatField()
    window_minutes = models.PositiveIntegerField(
        validators=[MinValueValidator(MIN_WINDOW_MINUTES), MaxValueValidator(MAX_WINDOW_MINUTES)]
    )
    min_requests = models.PositiveIntegerField(default=0)
    # While it fires its message is repeated at this distance; null: sent once.
    repeat_minutes = models.PositiveIntegerField(null=True, blank=True)
    channels = models.ManyToManyField(AlertChannel, blank=True, related_name="alerts")
    created_by = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    silenced_until = models.DateTimeField(null=True, blank=True)

    state = models.CharField(max_length=10, choices=State.choices, default=State.NO_DATA)
    # Why the latest look found nothing, in a sentence.
    problem = models.CharField(max_length=300, blank=True, default="")
    value = models.FloatField(null=True, blank=True)
    # That of the window a week before, of a change.
    value_before = models.FloatField(null=True, blank=True)
    measured_count = models.PositiveBigIntegerField(null=True, blank=True)
    state_since = models.DateTimeField(null=True, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    told_state = models.CharField(max_length=10, blank=True, default="")
    told_at = models.DateTimeField(null=True, blank=True)
    # Also keeps other workers away from an alert that is being looked at.
    next_check_at = models.DateTimeField(default=timezone.now)

    objects = ProjectManager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_figure_alert_per_name")]
        indexes = [models.Index(fields=["next_check_at"], name="figure_alerts_due")]

    def __str__(self) -> str:
        return self.name

    def audited_values(self) -> dict[str, Any]:
        """Leaves out the name of an end user or a session, which may be a person's."""
        filters: dict[str, Any] = self.query.get("filters") or {}
        return {
            "figure": self.query.get("figure", ""),
            "filters": {name: "set" if name in _OF_PEOPLE else value for name, value in filters.items()},
            "channels": sorted(self.channels.values_list("name", flat=True)),
        }

    @property
    def is_silenced(self) -> bool:
        return self.silenced_until is not None and self.silenced_until > timezone.now()


class AlertEvent(models.Model):
    class Kind(models.TextChoices):
        FIRED = "fired", "fired"
        REPEATED = "repeated", "still firing"
        RESOLVED = "resolved", "resolved"
        NO_DATA = "no_data", "no data"
        BROKEN = "broken", "broken"
        TEST = "test", "test"
        ROLLOUT = "rollout", "rollout"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="alert_events")
    alert = models.ForeignKey(FigureAlert, on_delete=models.CASCADE, null=True, blank=True, related_name="events")
    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    subject = models.CharField(max_length=400)
    text = models.TextField()
    content = models.JSONField(default=dict)
    value = models.FloatField(null=True, blank=True)
    value_before = models.FloatField(null=True, blank=True)
    is_silenced = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["alert", "-created_at"], name="alert_events_of_alert")]

    def __str__(self) -> str:
        return self.subject
