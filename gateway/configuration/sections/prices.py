from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from gateway.configuration.sections.base import ACTOR, Differences, EntriesSection, Values, checked
from integrations.models import ModelPrice
from integrations.pricing.entries import is_model_name
from integrations.pricing.periods import COSTS
from integrations.pricing.serializers import CostsSerializer
from integrations.pricing.services import remove_price, set_price
from integrations.registry import is_known


class PricesSection(EntriesSection):
    """Prices by `provider/model`, in US dollars per 1,000,000 tokens."""

    name = "prices"
    defaults = dict.fromkeys(COSTS)

    def read(self, name: str, given: Mapping[str, Any], path: Path) -> Values:
        provider, _, model = name.partition("/")
        if not is_known(provider) or not is_model_name(model):
            raise InvalidConfigurationError(
                [Problem(path, "Prices are called by provider/model, of a known provider.")]
            )
        data = checked(CostsSerializer, given, path)
        return {field: data.get(field) for field in COSTS}

    def stored(self) -> Mapping[str, Values]:
        rows = ModelPrice.objects.filter(project_id=self.project_id).order_by("provider", "model")
        return {f"{row.provider}/{row.model}": {field: getattr(row, field) for field in COSTS} for row in rows}

    def create(self, name: str, values: Values) -> None:
        provider, _, model = name.partition("/")
        set_price(project_id=self.project_id, provider=provider, model=model, costs=values, actor=ACTOR)

    def change(self, name: str, values: Values, differences: Differences) -> None:
        self.create(name, values)

    def delete(self, name: str) -> None:
        provider, _, model = name.partition("/")
        remove_price(project_id=self.project_id, provider=provider, model=model, actor=ACTOR)
