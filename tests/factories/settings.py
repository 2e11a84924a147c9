"""Makes settings of a project, as an operator or a client of the API would."""

from __future__ import annotations

from typing import Any

from core.models import Project
from gateway.models import GatewaySettings
from gateway.services import replace_settings


def make_settings(project: Project, **values: Any) -> GatewaySettings:
    """Sets some settings of a project; the others stay."""
    return replace_settings(project_id=project.pk, values=values, actor="test")
