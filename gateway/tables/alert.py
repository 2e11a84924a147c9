from __future__ import annotations

from typing import cast

from django.db import models
from django.utils import timezone

from core.models import Project
from core.tenancy import ProjectManager
from gateway.tables.figure_alert import CHANNEL_NAME_CHARACTERS, AlertChannel, AlertEvent


class BudgetAlert(models.Model):
    """A project's monthly spend has reached a share of its budget. `month` is YYYY-MM, UTC."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="budget_alerts")
    month = models.CharField(max_length=7)
    threshold_percent = models.PositiveSmallIntegerField()
    budget_usd = models.DecimalField(max_digits=20, decimal_places=10)
    spent_usd = models.DecimalField(max_digits=30, decimal_places=10, help_text="When the alert was raised.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Several workers may find the same alert; the constraint lets only one of them create and deliver it.
            models.UniqueConstraint(
                fields=["project", "month", "threshold_percent", "budget_usd"], name="budget_alert_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.threshold_percent} % of the budget of {self.month}"


class AlertDelivery(models.Model):
    """The delivery of a budget alert or of an event by one channel.

    `next_attempt_at` also keeps other workers away from a delivery that is being tried. `receiver` is the channel with
    its address; without a `channel_name` the address is that of the project's settings.
    """

    class Channel(models.TextChoices):
        WEBHOOK = "webhook"
        SLACK = "slack"
        EMAIL = "email"

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    alert = models.ForeignKey(BudgetAlert, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries")
    event = models.ForeignKey(AlertEvent, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    # A channel that was removed leaves its name in the history.
    receiver = models.ForeignKey(AlertChannel, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    channel_name = models.CharField(max_length=CHANNEL_NAME_CHARACTERS, blank=True, default="")
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    delivered_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "alert deliveries"
        constraints = [
            models.UniqueConstraint(fields=["alert", "channel", "channel_name"], name="alert_delivery_once"),
            models.UniqueConstraint(fields=["event", "channel", "channel_name"], name="alert_event_delivery_once"),
            models.CheckConstraint(
                condition=models.Q(alert__isnull=True) ^ models.Q(event__isnull=True), name="alert_delivery_of_one"
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"], name="alert_deliveries_pending", condition=models.Q(state="pending")
            )
        ]

    def __str__(self) -> str:
        return f"{self.way}: {self.state}"

    @property
    def about(self) -> BudgetAlert | AlertEvent:
        return cast("BudgetAlert | AlertEvent", self.alert or self.event)

    @property
    def way(self) -> str:
        return self.channel_name or self.channel


class AlertSecret(models.Model):
    """The secret that signs a project's webhooks; `token` is encrypted."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="alert_secret")
    token = models.TextField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    rotated_at = models.DateTimeField(null=True, blank=True)

    objects = ProjectManager()

    encrypted_fields = ("token",)

    class Meta:
        ordering = ["project_id"]

    def __str__(self) -> str:
        return f"Alert secret of {self.project_id}"


class OperatorAlert(models.Model):
    """A condition that needs an operator's attention, from its first message until it ended.

    `host` is empty if every host sees the same condition. `outcomes` holds the outcome of each message and channel.
    """

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=100, blank=True, default="")
    host = models.CharField(max_length=255, blank=True, default="")
    text = models.TextField()
    raised_at = models.DateTimeField()
    over_at = models.DateTimeField(null=True, blank=True)
    outcomes = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Several hosts may detect a condition at once; only one of them creates the row and sends the messages.
            models.UniqueConstraint(
                fields=["kind", "subject", "host"],
                condition=models.Q(over_at__isnull=True),
                name="operator_alert_open_once",
            )
        ]

    def __str__(self) -> str:
        return " ".join(word for word in (self.kind, self.subject, self.host) if word)
