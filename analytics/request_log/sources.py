from __future__ import annotations

from enum import StrEnum


class Source(StrEnum):
    """Where a request comes from. Each source says whether its requests are users' traffic, by which rollouts are
    forecast and judged and of which online evaluations sample: applications' calls, as they come."""

    is_of_users: bool

    def __new__(cls, value: str, is_of_users: bool) -> Source:
        member = str.__new__(cls, value)
        member._value_ = value
        member.is_of_users = is_of_users
        return member

    GATEWAY = "gateway", True
    # A record that was made of an application's span: its call did not pass the gateway.
    TELEMETRY = "telemetry", True
    # A record that was made of a line of a batch's results (docs/batches.md).
    BATCH = "batch", False
    # These choose the version of a prompt themselves.
    PLAYGROUND = "playground", False
    AGENT = "agent", False
    JUDGE = "judge", False
    EXPERIMENT = "experiment", False
    SHADOW = "shadow", False


OF_USERS = tuple(source.value for source in Source if source.is_of_users)
NOT_OF_USERS = tuple(sorted(source.value for source in Source if not source.is_of_users))
