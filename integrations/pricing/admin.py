"""Prices, their history and the runs of the sync in the admin, read-only: the console's pages set and sync prices."""

from __future__ import annotations

from django.contrib import admin

from core.site.admin import RightsAdmin
from integrations.pricing.models import ModelPrice, PricePeriod, PriceSyncLog
from integrations.pricing.periods import COSTS


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
