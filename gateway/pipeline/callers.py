from __future__ import annotations

from core.keys.services import KeyRecord
from gateway.limits.minute_limits import NO_CALLER, Caller
from gateway.pipeline.context import RequestState
from gateway.snapshot.project import ProjectSnapshot


def has_limits(state: RequestState) -> bool:
    snapshot, key = state.snapshot, state.key
    return snapshot.limits.is_set or key.limits is not None or key.team_limits is not None or snapshot.limits_users


def user_of(state: RequestState) -> str:
    if state.headers.user_id:
        return state.headers.user_id
    return state.request.user or "" if state.request is not None else ""


def caller_of(state: RequestState) -> Caller:
    return caller_for(state.snapshot, state.key, user_of(state) if state.snapshot.limits_users else "")


def caller_for(snapshot: ProjectSnapshot, key: KeyRecord, user_id: str) -> Caller:
    user_limits = snapshot.user_limits.get(user_id, snapshot.every_user) if user_id else None
    if key.limits is None and user_limits is None and key.team_limits is None:
        return NO_CALLER
    return Caller(
        key.id if key.limits is not None else 0,
        key.limits,
        user_id if user_limits is not None else "",
        user_limits,
        key.team_id if key.team_limits is not None else 0,
        key.team_limits,
    )
