from __future__ import annotations

from core.resources.declaration import Resource
from gateway.tables.end_user import MAX_END_USERS, EndUserLimit


class EndUserLimits(Resource[EndUserLimit]):
    model = EndUserLimit
    key = "user_id"
    maximum = MAX_END_USERS
    missing = ("not_found", "Not found.")
    taken = ("end_user_limit_exists", "The end user has limits already.")
    full = ("too_many_users", "A project limits at most {maximum} end users by name.")


END_USER_LIMITS = EndUserLimits()
