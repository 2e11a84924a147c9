from __future__ import annotations

from uuid import UUID

from analytics.queries.requests import latest_own_request

_MAX_REMEMBERED = 10_000

# The projects of which this process has seen a request: they stay connected.
_connected: set[UUID] = set()


def is_connected(project_id: UUID) -> bool:
    """Returns True once an application has sent a request. Raises the errors of the store."""
    if project_id in _connected:
        return True
    if latest_own_request(project_id) is None:
        return False
    if len(_connected) >= _MAX_REMEMBERED:
        _connected.clear()
    _connected.add(project_id)
    return True
