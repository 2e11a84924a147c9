from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from core.errors import ValidationError
from gateway.alerts.channels import CHANNELS
from gateway.configuration.problems import Path, below
from gateway.configuration.sections.base import Differences, Values, checked
from gateway.configuration.sections.resource import ResourceSection
from gateway.configuration.sections.subjects import plain_filters, with_ids, with_names
from gateway.figure_alerts.serializers import NewAlertSerializer
from gateway.figure_alerts.services import ALERTS
from gateway.tables.figure_alert import CHANNEL_NAME_CHARACTERS, MAX_CHANNELS_OF_ALERT, FigureAlert


class _FileAlertSerializer(NewAlertSerializer):
    channels = serializers.ListField(
        child=serializers.CharField(max_length=CHANNEL_NAME_CHARACTERS),
        required=False,
        max_length=MAX_CHANNELS_OF_ALERT,
    )


class AlertsSection(ResourceSection):
    name = "alerts"
    without_default = ("query", "condition", "threshold", "window_minutes")
    defaults = {"min_requests": 0, "repeat_minutes": None, "channels": []}
    resource = ALERTS
    body = _FileAlertSerializer

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        data = checked(_FileAlertSerializer, {**given, "name": name}, path)
        query = {"figure": data["query"]["figure"], "filters": plain_filters(data["query"]["filters"])}
        values = {field: data.get(field, default) for field, default in self.defaults.items()}
        values["channels"] = sorted(values["channels"])
        own = {field: data[field] for field in ("condition", "threshold", "window_minutes")}
        return {"query": query, **own, **values}

    def create(self, name: str, values: Values) -> None:
        super().create(name, self._columns(values))

    def change(self, name: str, values: Values, differences: Differences) -> None:
        super().change(name, self._columns(values), differences)

    def exported(self, name: str, values: Values) -> Values:
        found = super().exported(name, values)
        if not found["query"]["filters"]:
            del found["query"]["filters"]
        return found

    def values_of(self, row: FigureAlert) -> Values:
        filters = with_names(self.project_id, row.query.get("filters") or {})
        query = {"figure": row.query["figure"], "filters": filters}
        return {**super().values_of(row), "query": query, "channels": sorted(one.name for one in row.channels.all())}

    def _columns(self, values: Values) -> Values:
        query = values["query"]
        with below("query"):
            filters = with_ids(self.project_id, query["filters"])
        ids = {row.name: row.pk for row in CHANNELS.rows(self.project_id)}
        for place, name in enumerate(values["channels"]):
            if name not in ids:
                problem = f"The project has no alert channel {name!r}."
                raise ValidationError(f"channels.{place}: {problem}", details={f"channels.{place}": [problem]})
        channels = [ids[name] for name in values["channels"]]
        return {**values, "query": {**query, "filters": filters}, "channels": channels}
