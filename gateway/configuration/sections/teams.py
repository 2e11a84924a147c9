"""Only the limits of teams (docs/limits.md#limits-of-teams): members have accounts, which are not in the file."""

from __future__ import annotations

from core.keys.services import LIMIT_FIELDS
from core.teams.serializers import NewTeamSerializer
from core.teams.services import TEAMS
from gateway.configuration.sections.resource import ResourceSection


class TeamsSection(ResourceSection):
    name = "teams"
    defaults = dict.fromkeys(LIMIT_FIELDS)
    resource = TEAMS
    body = NewTeamSerializer
