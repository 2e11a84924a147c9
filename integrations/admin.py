from __future__ import annotations

from django.contrib import admin

from core.site.admin import RightsAdmin
from integrations.access.credentials import is_usable, masked, masked_headers
from integrations.models import ProviderIntegration
from integrations.pricing.models import ModelPrice, PricePeriod, PriceSyncLog
from integrations.pricing.periods import COSTS


@admin.register(ProviderIntegration)
class ProviderIntegrationAdmin(RightsAdmin):
    page_of_changes = "provider_keys"
    list_display = ["name", "provider", "project", "enabled", "key", "usable", "last_test", "base_url", "updated_at"]
    list_filter = ["provider", "enabled", "last_test_ok", "project"]
    list_select_related = ["project"]
    search_fields = ["name", "provider", "project__name"]
    fields = (
        *("project", "provider", "name", "enabled", "own_account", "key", "usable", "last_test", "base_url", "options"),
        *("weight", "priority", "rpm", "tpm", "served_models", "own_prices"),
        *("default_parameters", "forced_parameters", "extra_headers", "forward_headers", "created_at", "updated_at"),
    )
    readonly_fields = fields

    @admin.display(description="stored key")
    def key(self, row: ProviderIntegration) -> str:
        return masked(row) or "-"

    @admin.display(description="readable", boolean=True)
    def usable(self, row: ProviderIntegration) -> bool:
        return is_usable(row)

    @admin.display(description="last test", ordering="last_tested_at")
    def last_test(self, row: ProviderIntegration) -> str:
        if row.last_tested_at is None:
            return "-"
        return f"{row.last_test_reason}, {row.last_tested_at:%Y-%m-%d %H:%M} UTC"

    @admin.display(description="extra headers")
    def extra_headers(self, row: ProviderIntegration) -> str:
        return ", ".join(masked_headers(row)) or "-"


@admin.register(ModelPrice)
class ModelPriceAdmin(RightsAdmin):
    page_of_changes = "prices"
    has_shared_rows = True
    list_display = ["provider", "model", "project", *COSTS, "source", "updated_at"]
    list_filter = ["source", "provider"]
    list_select_related = ["project"]
    search_fields = ["provider", "model"]
    fields = ["project", "provider", "model", *COSTS, "terms", "source", "updated_at"]


@admin.register(PricePeriod)
class PricePeriodAdmin(RightsAdmin):
    page_of_changes = "prices"
    has_shared_rows = True
    list_display = ["provider", "model", "project", *COSTS, "source", "valid_from", "valid_until", "changed_by"]
    list_filter = ["source", "provider"]
    list_select_related = ["project"]
    search_fields = ["provider", "model"]


@admin.register(PriceSyncLog)
class PriceSyncLogAdmin(RightsAdmin):
    page_of_changes = "prices"
    project_lookup = ""
    list_display = ["started_at", "status", "trigger", "started_by", "added", "updated", "removed", "skipped"]
    list_filter = ["status", "trigger"]
    date_hierarchy = "started_at"
