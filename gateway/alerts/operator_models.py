"""Alerts about the installation itself, for those who run it."""

from __future__ import annotations

from django.db import models
from typing_extensions import override


class OperatorAlert(models.Model):
    """Something that a person has to see to, from when they were told of it until it was over.

    `host` is empty where every host sees the same. `told` says of each message and channel what became of it.
    """

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=100, blank=True, default="")
    host = models.CharField(max_length=255, blank=True, default="")
    text = models.TextField()
    raised_at = models.DateTimeField()
    over_at = models.DateTimeField(null=True, blank=True)
    told = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Of hosts that find the same at once, one tells.
            models.UniqueConstraint(
                fields=["kind", "subject", "host"],
                condition=models.Q(over_at__isnull=True),
                name="operator_alert_open_once",
            )
        ]

    @override
    def __str__(self) -> str:
        return " ".join(word for word in (self.kind, self.subject, self.host) if word)
