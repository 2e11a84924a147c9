from __future__ import annotations

from typing import Any

from django.db import models

from core.models import Project
from core.tenancy import ProjectManager
from gateway.project_settings.settings import ProjectSettings
from gateway.project_settings.values import audited, read_settings
from gateway.tables.alert import AlertDelivery as AlertDelivery  # Django looks for models in this module
from gateway.tables.alert import AlertSecret as AlertSecret
from gateway.tables.alert import BudgetAlert as BudgetAlert
from gateway.tables.alert import OperatorAlert as OperatorAlert
from gateway.tables.end_user import EndUserLimit as EndUserLimit
from gateway.tables.experiment import Experiment as Experiment
from gateway.tables.experiment import ExperimentAnswer as ExperimentAnswer
from gateway.tables.experiment import ExperimentItem as ExperimentItem
from gateway.tables.experiment import ExperimentScore as ExperimentScore
from gateway.tables.figure_alert import AlertChannel as AlertChannel
from gateway.tables.figure_alert import AlertEvent as AlertEvent
from gateway.tables.figure_alert import FigureAlert as FigureAlert
from gateway.tables.group import ModelGroupRow as ModelGroupRow
from gateway.tables.shadow import Shadow as Shadow
from gateway.tables.stored_object import StoredObject as StoredObject


class GatewaySettings(models.Model):
    """The gateway settings of one project; a project without a row has the defaults (docs/settings.md)."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="gateway_settings")
    # By name, as `project_settings.values.stored` makes them. What is missing has the default.
    values = models.JSONField(default=dict, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["project_id"]
        verbose_name = verbose_name_plural = "gateway settings"

    def __str__(self) -> str:
        return f"Gateway settings of {self.project_id}"

    @property
    def settings(self) -> ProjectSettings:
        return read_settings(self.values)

    @property
    def set_at_us(self) -> int:
        return int(self.updated_at.timestamp() * 1_000_000)

    def audited_values(self) -> dict[str, Any]:
        return audited(self.settings)


class SettingsChange(models.Model):
    """One change of a project's settings: `changes` holds [before, after] by field."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="settings_changes")
    actor = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changes = models.JSONField()

    objects = ProjectManager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["project", "-id"], name="settings_changes_of_project")]
        verbose_name = "change of settings"
        verbose_name_plural = "changes of settings"

    def __str__(self) -> str:
        return f"{', '.join(self.changes)} by {self.actor}"


class Playground(models.Model):
    """The playground's entry in the admin's list. It has no table: the console shows the page."""

    class Meta:
        managed = False
        default_permissions = ()
        verbose_name = "playground"
        verbose_name_plural = "playground"

    def __str__(self) -> str:
        return "playground"
