"""The limits of API keys in words, with what was spent of their budgets by the request log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from analytics.queries.spend import NEVER, key_spends
from console.settings_form.wording import rates_in_words
from core.models import ApiKey
from core.ui.formats import money

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def limits_in_words(project_id: UUID, keys: Sequence[ApiKey]) -> Mapping[int, str]:
    """Returns the words by the key's id. Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    now = datetime.now(UTC)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    of_month = _spent(project_id, [key for key in keys if key.monthly_budget_usd is not None], month)
    in_all = _spent(project_id, [key for key in keys if key.total_budget_usd is not None], _EPOCH)
    return {
        key.pk: "; ".join(_words(key, of_month.get(key.pk, Decimal(0)), in_all.get(key.pk, Decimal(0)))) or "none"
        for key in keys
    }


def _spent(project_id: UUID, keys: Sequence[ApiKey], since: datetime) -> Mapping[int, Decimal]:
    return key_spends(project_id, {key.pk: (NEVER, NEVER) for key in keys}, (since, NEVER))


def _words(key: ApiKey, of_month: Decimal, in_all: Decimal) -> Iterable[str]:
    if key.monthly_budget_usd is not None:
        yield f"{money(of_month)} of {money(key.monthly_budget_usd)} this month"
    if key.total_budget_usd is not None:
        yield f"{money(in_all)} of {money(key.total_budget_usd)} in all"
    yield from rates_in_words(key)
    for patterns, what in ((key.allowed_models, "models"), (key.allowed_providers, "providers")):
        if patterns:
            yield f"{what} {', '.join(patterns)}"
