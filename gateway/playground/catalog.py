from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from django.db.models import Q

from gateway.playground.shapes import PlaygroundModel
from gateway.protocol.wire import AUTO
from gateway.selectors import model_groups, project_settings
from integrations.pricing.selectors import project_prices
from integrations.sandbox.behaviours import BEHAVIOURS
from integrations.selectors import SANDBOX, enabled_credentials


def list_models(project_id: UUID, search: str) -> list[PlaygroundModel]:
    """`auto` and the preferred models come first, then the model groups, then the others by name.

    `search` holds words that the name must contain.
    """
    words = search.lower().split()
    providers = {credentials.provider for credentials in enabled_credentials(project_id)}
    preferred = project_settings(project_id).preferred_models
    known = {name: _model(name, None) for name in model_groups(project_id)}
    known.update((model["model"], model) for model in _priced(project_id, providers))
    if SANDBOX in providers:
        known.update((name, _model(name, SANDBOX)) for name in (f"{SANDBOX}/{model}" for model in BEHAVIOURS))
    first = [_preferred(known.pop(name, None), name) for name in ([AUTO, *preferred] if preferred else [])]
    return [model for model in [*first, *known.values()] if all(word in model["model"].lower() for word in words)]


def _priced(project_id: UUID, providers: set[str]) -> list[PlaygroundModel]:
    # Embedding and ranking models have a price for input only, and are left out.
    answering = ~Q(output_cost_per_1m=None) & ~Q(output_cost_per_1m=0, input_cost_per_1m__gt=0)
    # A name that ends in `*` is a price for all of a provider's models.
    rows = project_prices(project_id).filter(answering, provider__in=providers).exclude(model__endswith="*")
    fields = rows.values_list("provider", "model", "input_cost_per_1m", "output_cost_per_1m")
    return [_model(f"{provider}/{model}", provider, paid, earned) for provider, model, paid, earned in fields]


def _model(
    name: str, provider: str | None, paid: Decimal | None = None, earned: Decimal | None = None
) -> PlaygroundModel:
    return {
        "model": name,
        "provider": provider,
        "preferred": False,
        "input_cost_per_1m": None if paid is None else f"{paid.normalize():f}",
        "output_cost_per_1m": None if earned is None else f"{earned.normalize():f}",
    }


def _preferred(known: PlaygroundModel | None, name: str) -> PlaygroundModel:
    provider = name.partition("/")[0] if "/" in name else None
    return {**(known or _model(name, provider)), "preferred": True}
