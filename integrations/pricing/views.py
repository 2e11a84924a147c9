"""The endpoints of prices: reading them, setting them by hand for the project, and syncing them for all projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_view
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from core.errors import NotFoundError, ValidationError
from core.openapi import PAGE, operation, page_parameters
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset
from core.wire.serializers import EmptyBodySerializer
from integrations.errors import PriceNotFoundError, UnknownProviderError
from integrations.pricing.entries import MODEL_LENGTH, is_model_name
from integrations.pricing.filters import PeriodFilter, PriceFilter
from integrations.pricing.models import ModelPrice, PricePeriod, PriceSyncLog
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

if TYPE_CHECKING:
    # ListAPIView is generic in its type stubs only, not when the program runs.
    PriceListView = ListAPIView[ModelPrice]
    PeriodListView = ListAPIView[PricePeriod]
    SyncListView = ListAPIView[PriceSyncLog]
else:
    PriceListView = PeriodListView = SyncListView = ListAPIView


@extend_schema_view(get=operation("listPrices", "List prices", query=[PAGE], page=PriceSerializer))
class PricesView(ProjectAPIView, PriceListView):
    """Lists one entry for each model: the project's own price, or else the price for all projects."""

    serializer_class = PriceSerializer
    filterset_class = PriceFilter

    @override
    def get_queryset(self) -> QuerySet[ModelPrice]:
        return project_prices(self.project_id)


@extend_schema_view(
    get=operation("listProviderPrices", "Prices of a provider", query=[PAGE], page=PriceSerializer, errors=[404])
)
class ProviderPricesView(ProjectAPIView, PriceListView):
    """Lists one entry for each model: the project's own price, or else the price for all projects."""

    serializer_class = PriceSerializer
    filterset_class = PriceFilter

    @override
    def get_queryset(self) -> QuerySet[ModelPrice]:
        provider: str = self.kwargs["provider"]
        if not is_known(provider):
            raise NotFoundError("There is no such provider.", code="provider_not_found")
        return project_prices(self.project_id).filter(provider=provider)


class PriceView(ProjectAPIView):
    @operation("getPrice", "What a model is priced by", answer=PriceSerializer, errors=[404])
    def get(self, request: Request, provider: str, model: str) -> Response:
        """Returns the entry that applies to the model, which may be listed under a name without the version."""
        row = applied_price(self.project_id, provider, model) if is_known(provider) else None
        if row is None:
            raise PriceNotFoundError("No price of this model is known.")
        return Response(PriceSerializer(row).data)

    @operation("setPrice", "Set a price by hand", body=CostsSerializer, answer=PriceSerializer, errors=[404, 409])
    def put(self, request: Request, provider: str, model: str) -> Response:
        """Sets a price that applies to this project alone and that no sync overwrites."""
        _check_name(provider, model)
        serializer = CostsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        costs = serializer.validated_data
        row = set_price(project_id=self.project_id, provider=provider, model=model, costs=costs, actor=self.actor)
        return Response(PriceSerializer(row).data)

    @operation("removePrice", "Take a price set by hand away", status=204, errors=[404])
    def delete(self, request: Request, provider: str, model: str) -> Response:
        """Removes the project's own price, so that the price for all projects applies again."""
        _check_name(provider, model)
        remove_price(project_id=self.project_id, provider=provider, model=model, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(
    get=operation(
        "listPriceHistory",
        "Which price counted when",
        query=[PAGE, PeriodParameters],
        page=PeriodSerializer,
        errors=[404],
    )
)
class PriceHistoryView(ProjectAPIView, PeriodListView):
    """Lists the periods of the model's prices, newest first; with `at` only those valid then, the first of which
    applied to the project."""

    serializer_class = PeriodSerializer
    filterset_class = PeriodFilter

    @override
    def get_queryset(self) -> QuerySet[PricePeriod]:
        parameters = PeriodParameters(data=self.request.query_params)
        parameters.is_valid(raise_exception=True)
        _check_name(self.kwargs["provider"], self.kwargs["model"])
        return price_periods(self.project_id, **self.kwargs, **parameters.validated_data)


class PriceSyncView(ProjectAPIView):
    @operation(
        "syncPrices",
        "Sync prices from both catalogs",
        body=EmptyBodySerializer,
        answer=SyncLogSerializer,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        """Runs the sync and answers when it has ended. A catalog that could not be read is listed in the answer and is
        no error."""
        EmptyBodySerializer(data=request.data).is_valid(raise_exception=True)
        log = sync_prices(trigger=PriceSyncLog.Trigger.API, actor=f"{self.actor} of {self.project_id}")
        return Response(SyncLogSerializer(log).data)


class SyncHistoryPagination(LimitOffset):
    default_limit = max_limit = SYNC_HISTORY


@extend_schema_view(
    get=operation(
        "listPriceSyncs",
        "The last syncs",
        query=[page_parameters(SYNC_HISTORY, SYNC_HISTORY)],
        page=SyncLogSerializer,
    )
)
class SyncHistoryView(ProjectAPIView, SyncListView):
    """Lists the runs of the sync, newest first, the same for all projects."""

    serializer_class = SyncLogSerializer
    pagination_class = SyncHistoryPagination
    filter_backends = []

    @override
    def get_queryset(self) -> QuerySet[PriceSyncLog]:
        return sync_history()


def _check_name(provider: str, model: str) -> None:
    if not is_known(provider):
        raise UnknownProviderError(provider)
    if not is_model_name(model):
        problem = f"Must be printable text of at most {MODEL_LENGTH} characters."
        raise ValidationError(f"model: {problem}", details={"model": [problem]})
