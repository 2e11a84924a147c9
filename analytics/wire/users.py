from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from analytics.queries.held_users import HeldData


@dataclass(frozen=True)
class UserErasure:
    """The latest erasure of the user. `request_count` was counted when it was requested; `erased_request_count` grows
    to it, and beyond where judges and experiments quoted the requests."""

    state: Literal["pending", "erased", "closed"]
    requested_at: datetime
    erased_at: datetime | None
    request_count: int
    erased_request_count: int


@dataclass(frozen=True)
class EndUser(HeldData):
    """What the request log holds of the user now, over all time."""

    erasure: UserErasure | None
