"""What the management API takes is what the file has: a field that is added there is not forgotten here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rest_framework.serializers import BaseSerializer

from analytics.serializers.dashboards import NewChartSerializer
from analytics.serializers.trace_destinations import NewTraceDestinationSerializer
from core.keys.serializers import NewApiKeySerializer
from core.teams.serializers import NewTeamSerializer
from gateway.configuration.plan import SECTIONS
from gateway.configuration.sections.alert_channels import AlertChannelsSection
from gateway.configuration.sections.alerts import AlertsSection
from gateway.configuration.sections.api_keys import ApiKeysSection
from gateway.configuration.sections.base import Section
from gateway.configuration.sections.dashboards import CHART_DEFAULTS
from gateway.configuration.sections.end_users import EndUsersSection
from gateway.configuration.sections.integrations import IntegrationsSection
from gateway.configuration.sections.model_groups import ModelGroupsSection
from gateway.configuration.sections.prices import PricesSection
from gateway.configuration.sections.prompts import PromptsSection
from gateway.configuration.sections.settings import SettingsSection
from gateway.configuration.sections.teams import TeamsSection
from gateway.configuration.sections.trace_destinations import TraceDestinationsSection
from gateway.end_users.serializers import NewEndUserLimitSerializer
from gateway.figure_alerts.serializers import NewAlertChannelSerializer, NewAlertSerializer
from gateway.model_groups.serializers import NewGroupSerializer
from gateway.project_settings.api_fields import ValuesSerializer
from integrations.pricing.serializers import CostsSerializer
from integrations.serializers import NewIntegrationSerializer
from prompts.serializers import ImportedConfigSerializer

_ROOT = Path(__file__).parents[3]
# The names of entries stand before them in the file.
_NAMES = {"project_id", "name", "user_id"}


@pytest.mark.parametrize(
    ("section", "serializer", "called"),
    [
        (SettingsSection, ValuesSerializer, {}),
        (IntegrationsSection, NewIntegrationSerializer, {}),
        (PricesSection, CostsSerializer, {}),
        (ModelGroupsSection, NewGroupSerializer, {}),
        (TeamsSection, NewTeamSerializer, {}),
        (ApiKeysSection, NewApiKeySerializer, {"team_id": "team"}),
        (EndUsersSection, NewEndUserLimitSerializer, {}),
        (PromptsSection, ImportedConfigSerializer, {"active_version_number": "active_version"}),
        (AlertChannelsSection, NewAlertChannelSerializer, {}),
        (AlertsSection, NewAlertSerializer, {}),
        (TraceDestinationsSection, NewTraceDestinationSerializer, {}),
    ],
)
def test_section__fields__are_those_of_the_api(
    section: type[Section], serializer: type[BaseSerializer[Any]], called: dict[str, str]
) -> None:
    made: Any = serializer()
    taken = {called.get(name, name) for name in made.fields if name not in _NAMES}
    # The secret of a key is made by the API, and may be brought along by a file.
    assert section.fields() - ({"secret"} if section is ApiKeysSection else set()) == taken


def test_charts__fields__are_those_of_the_api() -> None:
    assert set(NewChartSerializer().fields) - _NAMES == {"title", "kind", "figures", *CHART_DEFAULTS}


def test_sections__page__has_a_row_of_each() -> None:
    document = (_ROOT / "docs" / "configuration-files.md").read_text(encoding="utf-8")
    assert [section.name for section in SECTIONS if f"\n| `{section.name}` |" not in document] == []
