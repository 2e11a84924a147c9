"""Whether an application has sent a request of a project yet."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from analytics.queries.own_requests import latest_own_request
from analytics.queries.visible import looked_up
from core.models import ApiKey
from core.ui.panels import in_thread, within_limit

_MAX_REMEMBERED = 10_000

# The projects of which this process has seen a request: they stay connected.
_connected: set[UUID] = set()


def is_connected(project_id: UUID) -> bool:
    """Returns True once an application has sent a request. If the store does not say so within the time that the first
    byte of a page may wait, the project is connected if one of its keys was used."""
    if project_id in _connected:
        return True
    found = within_limit(in_thread(partial(looked_up(project_id).run, _has_request, project_id)), otherwise=None)
    if found is None:
        return ApiKey.objects.for_project(project_id).exclude(last_used_at=None).exists()
    if found:
        if len(_connected) >= _MAX_REMEMBERED:
            _connected.clear()
        _connected.add(project_id)
    return found


def _has_request(project_id: UUID) -> bool | None:
    return latest_own_request(project_id) is not None
