from __future__ import annotations

from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters

from integrations.pricing.models import ModelPrice, PricePeriod, PriceSource

_SEARCH_CHARACTERS = 200


class PriceFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    source = filters.ChoiceFilter(choices=PriceSource.choices)
    search = filters.CharFilter(method="find", max_length=_SEARCH_CHARACTERS)

    class Meta:
        model = ModelPrice
        fields: tuple[str, ...] = ()

    def find(self, prices: QuerySet[ModelPrice], name: str, value: str) -> QuerySet[ModelPrice]:
        return prices.filter(Q(model__icontains=value) | Q(provider__icontains=value))


class PeriodFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    source = filters.ChoiceFilter(choices=PriceSource.choices)

    class Meta:
        model = PricePeriod
        fields: tuple[str, ...] = ()
