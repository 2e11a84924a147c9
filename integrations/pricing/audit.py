"""The entries of the audit log for a change of the prices of all projects."""

from __future__ import annotations

from core.audit.recording import CHANGED, Change
from core.audit.subjects import PRICE_LIST
from integrations.pricing.models import PriceSyncLog
from integrations.pricing.table import TableChange


def price_list_changes(made: TableChange | PriceSyncLog) -> list[Change]:
    """Returns the change of the price list with its numbers of prices; none where no price changed."""
    counts = {name: getattr(made, name) for name in ("added", "updated", "removed")}
    after = {name: count for name, count in counts.items() if count}
    if not after:
        return []
    number = str(made.pk) if isinstance(made, PriceSyncLog) else "shipped"
    return [Change(PRICE_LIST, number, "prices of all projects", None, CHANGED, after=after)]
