"""What judging may cost in a month where nobody said it: a share of the project's budget."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from uuid import UUID

from gateway.selectors import project_settings
from integrations.pricing.cost import PLACES

SHARE = Decimal("0.1")


def share_of_budget(project_id: UUID) -> Decimal | None:
    """Returns a tenth of the project's budget of the month; None where it has none."""
    budget = project_settings(project_id).monthly_budget_usd
    return None if budget is None else (budget * SHARE).quantize(PLACES, rounding=ROUND_DOWN)
