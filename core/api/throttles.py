"""Rate limits per project for calls that cost the gateway more than a query."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from core.api.authentication import ProjectAccess


class ProjectThrottle(SimpleRateThrottle):
    def get_cache_key(self, request: Request, view: Any) -> str | None:
        return f"{self.scope}:{request.auth.project_id}" if isinstance(request.auth, ProjectAccess) else None
