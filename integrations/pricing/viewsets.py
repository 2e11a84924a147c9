from __future__ import annotations

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.errors import NotFoundError, ValidationError
from core.openapi import PAGE, operation, page_parameters
from core.wire.pagination import LimitOffset
from core.wire.serializers import EmptyBodySerializer
from integrations.errors import PriceNotFoundError, UnknownProviderError
from integrations.pricing.entries import MODEL_LENGTH, is_model_name
from integrations.pricing.filters import PeriodFilter, PriceFilter
from integrations.pricing.models import PriceSyncLog
from integrations.pricing.selectors import SYNC_HISTORY, applied_price, price_periods, project_prices, sync_history
from integrations.pricing.serializers import (
    CostsSerializer,
    PeriodParameters,
    PeriodSerializer,
    PriceSerializer,
    SyncLogSerializer,
)
from integrations.pricing.services import remove_price, set_price
from integrations.pricing.sync import sync_prices
from integrations.registry import is_known


class SyncHistoryPagination(LimitOffset):
    default_limit = max_limit = SYNC_HISTORY


class PriceViewSet(ProjectViewSet):
    filterset_class = PriceFilter

    @operation("listPrices", "List prices", query=[PAGE], page=PriceSerializer)
    def list(self, request: Request) -> Response:
        """Lists one entry for each model: the project's own price, or else the price for all projects."""
        return self.page(project_prices(self.project_id), PriceSerializer)

    @operation(
        "syncPrices",
        "Sync prices from both catalogs",
        body=EmptyBodySerializer,
        answer=SyncLogSerializer,
        errors=[409],
    )
    @action(detail=False, methods=["post"])
    def sync(self, request: Request) -> Response:
        """Runs the sync and answers when it has ended. A catalog that could not be read is listed in the answer and is
        no error."""
        self.valid_body(EmptyBodySerializer)
        log = sync_prices(trigger=PriceSyncLog.Trigger.API, actor=f"{self.actor} of {self.project_id}")
        return Response(SyncLogSerializer(log).data)

    @operation(
        "listPriceSyncs",
        "The last syncs",
        query=[page_parameters(SYNC_HISTORY, SYNC_HISTORY)],
        page=SyncLogSerializer,
    )
    @action(detail=False, url_path="sync-history", filterset_class=None, pagination_class=SyncHistoryPagination)
    def sync_history(self, request: Request) -> Response:
        """Lists the runs of the sync, newest first, the same for all projects."""
        return self.page(sync_history(), SyncLogSerializer)


class ModelPriceViewSet(ProjectViewSet):
    """The prices of one provider. A model's name may have slashes."""

    lookup_url_kwarg = "model"
    lookup_value_converter = "slashed"
    filterset_class = PriceFilter

    @operation("listProviderPrices", "Prices of a provider", query=[PAGE], page=PriceSerializer, errors=[404])
    def list(self, request: Request, provider: str) -> Response:
        """Lists one entry for each model: the project's own price, or else the price for all projects."""
        if not is_known(provider):
            raise NotFoundError("There is no such provider.", code="provider_not_found")
        return self.page(project_prices(self.project_id).filter(provider=provider), PriceSerializer)

    @operation("getPrice", "What a model is priced by", answer=PriceSerializer, errors=[404])
    def retrieve(self, request: Request, provider: str, model: str) -> Response:
        """Returns the entry that applies to the model, which may be listed under a name without the version."""
        row = applied_price(self.project_id, provider, model) if is_known(provider) else None
        if row is None:
            raise PriceNotFoundError("No price of this model is known.")
        return Response(PriceSerializer(row).data)

    @operation("setPrice", "Set a price by hand", body=CostsSerializer, answer=PriceSerializer, errors=[404, 409])
    def update(self, request: Request, provider: str, model: str) -> Response:
        """Sets a price that applies to this project alone and that no sync overwrites."""
        _check_name(provider, model)
        costs = self.valid_body(CostsSerializer).validated_data
        row = set_price(project_id=self.project_id, provider=provider, model=model, costs=costs, actor=self.actor)
        return Response(PriceSerializer(row).data)

    @operation("removePrice", "Take a price set by hand away", status=204, errors=[404])
    def destroy(self, request: Request, provider: str, model: str) -> Response:
        """Removes the project's own price, so that the price for all projects applies again."""
        _check_name(provider, model)
        remove_price(project_id=self.project_id, provider=provider, model=model, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation(
        "listPriceHistory",
        "Which price counted when",
        query=[PAGE, PeriodParameters],
        page=PeriodSerializer,
        errors=[404],
    )
    @action(detail=True, filterset_class=PeriodFilter)
    def history(self, request: Request, provider: str, model: str) -> Response:
        """Lists the periods of the model's prices, newest first; with `at` only those valid then, the first of which
        applied to the project."""
        at = self.valid_query(PeriodParameters).validated_data
        _check_name(provider, model)
        return self.page(price_periods(self.project_id, provider=provider, model=model, **at), PeriodSerializer)


def _check_name(provider: str, model: str) -> None:
    if not is_known(provider):
        raise UnknownProviderError(provider)
    if not is_model_name(model):
        problem = f"Must be printable text of at most {MODEL_LENGTH} characters."
        raise ValidationError(f"model: {problem}", details={"model": [problem]})
