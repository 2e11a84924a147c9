from __future__ import annotations

from typing import Any

from core.models import Project
from gateway.models import GatewaySettings
from gateway.services import replace_settings


def make_settings(project: Project, **values: Any) -> GatewaySettings:
    return replace_settings(project_id=project.pk, values=values, actor="test")
