from __future__ import annotations

import uuid

from django.db import models

from core.models import Project
from core.tenancy import ProjectManager

DASHBOARD_NAME_CHARACTERS = 100
CHART_TITLE_CHARACTERS = 100
OWNER_CHARACTERS = 200


class Dashboard(models.Model):
    """Without `is_shared` only the `owner`, the actor who made it, sees the dashboard."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="dashboards")
    owner = models.CharField(max_length=OWNER_CHARACTERS)
    name = models.CharField(max_length=DASHBOARD_NAME_CHARACTERS)
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["name", "id"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["project", "owner", "name"], name="one_dashboard_per_name")]

    def __str__(self) -> str:
        return self.name


class ChartKind(models.TextChoices):
    LINE = "line", "Line over time"
    BARS = "bars", "Bars over time"
    RANKING = "ranking", "Ranking"
    NUMBER = "number", "Single figure"
    TABLE = "table", "Table"


class Chart(models.Model):
    """The figures of a chart: their names, what they are split by, and their filters (`analytics.figures`).

    They may name something that was deleted since.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    dashboard = models.ForeignKey(Dashboard, on_delete=models.CASCADE, related_name="charts")
    # Charts are shown in the order of their positions, which have no gaps.
    position = models.PositiveSmallIntegerField()
    title = models.CharField(max_length=CHART_TITLE_CHARACTERS)
    kind = models.CharField(max_length=8, choices=ChartKind)
    # The chart takes the whole width of the page.
    is_wide = models.BooleanField(default=False)
    figures = models.JSONField()
    group_by = models.CharField(max_length=32, blank=True, default="")
    tag = models.CharField(max_length=64, blank=True, default="")
    filters = models.JSONField(default=dict)

    class Meta:
        ordering = ["position", "id"]
        default_permissions = ()

    def __str__(self) -> str:
        return self.title
