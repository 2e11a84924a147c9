from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.common import RANGE
from analytics.parameters.ranges import parse_range
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.pagination import Listing, listing_response, parse_page
from core.wire.parameters import RangeParameters
from gateway.model_catalog.filters import ABILITIES, SORTS, CatalogFilter, matching, sorted_by
from gateway.model_catalog.offers import Catalog, read_figures
from gateway.model_catalog.shapes import CatalogModel, catalog_model
from integrations.registry import provider_named

_MAX_CHARACTERS = 200


class CatalogParameters(RangeParameters):
    search = serializers.CharField(required=False, max_length=_MAX_CHARACTERS)
    family = serializers.CharField(required=False, max_length=_MAX_CHARACTERS)
    provider = serializers.CharField(required=False, max_length=_MAX_CHARACTERS)
    abilities = serializers.CharField(
        required=False,
        max_length=_MAX_CHARACTERS,
        help_text=f"Abilities that the model has to have, separated by commas: {', '.join(ABILITIES)}.",
    )
    include_others = serializers.BooleanField(
        required=False, default=False, help_text="Also the known models of providers without a key in this project."
    )
    sort = serializers.ChoiceField(required=False, choices=[*SORTS, *(f"-{name}" for name in SORTS)])

    def validate_provider(self, value: str) -> str:
        found = provider_named(value)
        if not found:
            raise serializers.ValidationError("There is no such provider.")
        return found

    def validate_abilities(self, value: str) -> list[str]:
        named = [name for name in value.split(",") if name]
        for name in named:
            if name not in ABILITIES:
                raise serializers.ValidationError(f"There is no ability {name}. There are: {', '.join(ABILITIES)}.")
        return named

    def to_filter(self) -> CatalogFilter:
        given: dict[str, Any] = self.validated_data
        return CatalogFilter(
            search=given.get("search", ""),
            provider=given.get("provider", ""),
            abilities=given.get("abilities", ()),
            family=given.get("family", "").lower(),
        )


class ModelCatalogViewSet(ProjectViewSet):
    @operation(
        "listCatalogModels", "The model catalog", query=[PAGE, CatalogParameters], page=CatalogModel, page_fields=RANGE
    )
    def list(self, request: Request) -> Response:
        """The models that the project can call or has called in the range, the most used first, each at each of its
        providers: prices, abilities, the project's own figures, and who may call it."""
        given, page, time_range = self.valid_query(CatalogParameters), parse_page(request), parse_range(request)
        catalog = Catalog(self.project_id, read_figures(self.project_id, time_range))
        offers = catalog.offers(with_others=given.validated_data["include_others"])
        found = sorted_by(matching(offers, given.to_filter()), given.validated_data.get("sort", ""))
        shown = [catalog_model(offer, catalog.keys_of(offer)) for offer in page.of(found)]
        more = {"start_date": time_range.start, "end_date": time_range.end}
        return listing_response(request, page, Listing(len(found), shown, more))
