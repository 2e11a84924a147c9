"""The tables of hosts, of leases, and of the runs of scheduled tasks."""

from __future__ import annotations

from django.db import models

NAME_CHARACTERS = 255


class Lease(models.Model):
    """A role that one process of the installation plays at a time. It ends unless renewed, by the database's clock;
    `holder` is empty once given back."""

    name = models.CharField(primary_key=True, max_length=40)
    holder = models.CharField(max_length=NAME_CHARACTERS, blank=True)
    renewed_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.holder or 'nobody'}"


class ScheduledRun(models.Model):
    name = models.CharField(primary_key=True, max_length=100)
    ran_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} at {self.ran_at}"


class Host(models.Model):
    """A host that runs `serve`, as it last reported. `left_at` is set by an orderly stop."""

    name = models.CharField(primary_key=True, max_length=NAME_CHARACTERS)
    # One start of `serve`: two hosts of one name have two of them, in turn.
    instance = models.CharField(max_length=32)
    version = models.CharField(max_length=100)
    started_at = models.DateTimeField()
    # Without an index, which each report would write: the table has one row a host and is read as a whole.
    seen_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)
    # The keys are `web_workers`, `ready`, `in_flight`, `unshipped_bytes` and `children_down`.
    report = models.JSONField(default=dict)

    class Meta:
        ordering = ["name"]
        default_permissions = ("view", "delete")

    def __str__(self) -> str:
        return self.name
