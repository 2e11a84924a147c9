"""Admin pages of prices: prices set by hand for all projects or for one, their history, and the runs of the sync."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from typing_extensions import override

from core.errors import ApplicationError
from core.rights.asking import may, right_of_page
from core.site.admin import RightsAdmin
from integrations.pricing.entries import DIGITS, MAX_PER_MILLION, PLACES, is_model_name
from integrations.pricing.models import ModelPrice, PricePeriod, PriceSource, PriceSyncLog
from integrations.pricing.periods import COSTS
from integrations.pricing.services import remove_price, set_price
from integrations.pricing.sync import sync_prices
from integrations.registry import is_known

if TYPE_CHECKING:
    # Django's ModelForm is generic in its type stubs only, not when the program runs.
    PriceModelForm = forms.ModelForm[ModelPrice]
else:
    PriceModelForm = forms.ModelForm

_NAMES = ["project", "provider", "model"]


def _cost() -> forms.DecimalField:
    return forms.DecimalField(
        min_value=0,
        max_value=MAX_PER_MILLION,
        max_digits=DIGITS,
        decimal_places=PLACES,
        required=False,
        help_text="US dollars per 1,000,000 tokens. Empty is unknown; cached tokens then cost what input does.",
    )


class PriceForm(PriceModelForm):
    input_cost_per_1m = _cost()
    output_cost_per_1m = _cost()
    cache_read_cost_per_1m = _cost()
    cache_write_cost_per_1m = _cost()

    class Meta:
        model = ModelPrice
        fields = [*_NAMES, *COSTS]

    def clean_provider(self) -> str:
        provider: str = self.cleaned_data["provider"]
        if not is_known(provider):
            raise forms.ValidationError("Unknown provider.")
        return provider

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"]
        if not is_model_name(model):
            raise forms.ValidationError("Must be printable.")
        return model


@admin.register(ModelPrice)
class ModelPriceAdmin(RightsAdmin):
    """The page of prices. A price that is saved here gets the source `manual`; after its deletion the catalogs' price
    applies."""

    has_shared_rows = True
    form = PriceForm
    list_display = ["provider", "model", "project", *COSTS, "source", "updated_at"]
    list_filter = ["source", "provider"]
    list_select_related = ["project"]
    search_fields = ["provider", "model"]
    fields = [*_NAMES, *COSTS, "terms", "source", "updated_at"]
    # A price that is set by hand has no terms, so they are read-only.
    readonly_fields = ["terms", "source", "updated_at"]
    # Bulk deletion from the list is disabled, since it would delete the catalogs' prices too.
    actions = None

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: ModelPrice | None = None) -> list[str]:
        return [*self.readonly_fields, *_NAMES] if obj else list(self.readonly_fields)

    @override
    def has_delete_permission(self, request: HttpRequest, obj: ModelPrice | None = None) -> bool:
        by_hand = obj is None or obj.source == PriceSource.MANUAL
        return by_hand and super().has_delete_permission(request, obj)

    @override
    def save_model(
        self, request: HttpRequest, obj: ModelPrice, form: forms.ModelForm[ModelPrice], change: bool
    ) -> None:
        costs = {name: getattr(obj, name) for name in COSTS}
        row = set_price(
            project_id=obj.project_id, provider=obj.provider, model=obj.model, costs=costs, actor=_actor(request)
        )
        obj.pk, obj.source, obj.terms = row.pk, row.source, row.terms

    @override
    def delete_model(self, request: HttpRequest, obj: ModelPrice) -> None:
        remove_price(project_id=obj.project_id, provider=obj.provider, model=obj.model, actor=_actor(request))


@admin.register(PricePeriod)
class PricePeriodAdmin(RightsAdmin):
    has_shared_rows = True
    list_display = ["provider", "model", "project", *COSTS, "source", "valid_from", "valid_until", "changed_by"]
    list_filter = ["source", "provider"]
    list_select_related = ["project"]
    search_fields = ["provider", "model"]


@admin.register(PriceSyncLog)
class PriceSyncLogAdmin(RightsAdmin):
    project_lookup = ""
    list_display = ["started_at", "status", "trigger", "started_by", "added", "updated", "removed", "skipped"]
    list_filter = ["status", "trigger"]

    @override
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.sync_now)
        return [path("sync/", view, name="integrations_sync_prices"), *super().get_urls()]

    @override
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {**(extra_context or {}), "may_sync": _may_sync(request)})

    def sync_now(self, request: HttpRequest) -> HttpResponse:
        """Runs the sync and redirects to the list of runs, whose first row shows the outcome."""
        if not _may_sync(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            log = sync_prices(trigger=PriceSyncLog.Trigger.ADMIN, actor=_actor(request))
        except ApplicationError as error:
            messages.error(request, error.message)
        else:
            good = log.status == PriceSyncLog.Status.SUCCESS
            messages.add_message(
                request, messages.SUCCESS if good else messages.ERROR, f"The sync ended: {log.status}."
            )
        return HttpResponseRedirect(reverse("admin:integrations_pricesynclog_changelist"))


def _actor(request: HttpRequest) -> str:
    return f"user:{request.user.get_username()}"


def _may_sync(request: HttpRequest) -> bool:
    """Returns True for a user who may set prices in any project, as over the API."""
    return may(request.user, right_of_page("integrations_sync_prices"))
