from __future__ import annotations

from gateway.configuration.sections.resource import ResourceSection
from gateway.end_users.serializers import NewEndUserLimitSerializer
from gateway.end_users.services import END_USER_LIMITS


class EndUsersSection(ResourceSection):
    name = "end_users"
    defaults = dict.fromkeys(("monthly_budget_usd", "rate_limit_rpm", "rate_limit_tpm", "max_concurrent_requests"))
    resource = END_USER_LIMITS
    body = NewEndUserLimitSerializer
