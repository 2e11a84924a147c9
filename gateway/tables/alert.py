"""The tables of alerts: budget alerts, their deliveries and secrets of webhooks, and alerts about the installation."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from typing_extensions import override

from core.models import Project
from core.tenancy import ProjectManager


class BudgetAlert(models.Model):
    """An alert: the month's spend of a project has reached a share of its budget. `month` is YYYY-MM, UTC."""

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
            models.UniqueConstraint(fields=["project", "month", "threshold_percent"], name="budget_alert_once")
        ]

    @override
    def __str__(self) -> str:
        return f"{self.threshold_percent} % of the budget of {self.month}"


class AlertDelivery(models.Model):
    """The delivery of an alert by one channel. `next_attempt_at` also keeps other workers away from a delivery that is
    being tried."""

    class Channel(models.TextChoices):
        WEBHOOK = "webhook"
        EMAIL = "email"

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    alert = models.ForeignKey(BudgetAlert, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    delivered_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "alert deliveries"
        constraints = [models.UniqueConstraint(fields=["alert", "channel"], name="alert_delivery_once")]
        indexes = [
            models.Index(
                fields=["next_attempt_at"], name="alert_deliveries_pending", condition=models.Q(state="pending")
            )
        ]

    @override
    def __str__(self) -> str:
        return f"{self.channel}: {self.state}"


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

    @override
    def __str__(self) -> str:
        return f"Alert secret of {self.project_id}"


class OperatorAlert(models.Model):
    """A condition that needs an operator's attention, from the first message about it until it ended. `host` is empty
    where every host sees the same condition. `outcomes` holds the outcome of each message and channel."""

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

    @override
    def __str__(self) -> str:
        return " ".join(word for word in (self.kind, self.subject, self.host) if word)
