"""Who had what deleted, and how far that is: to look at. The ids themselves are not shown, only their hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from analytics.models import Deletion

if TYPE_CHECKING:
    DeletionModelAdmin = admin.ModelAdmin[Deletion]  # generic in the stubs only
else:
    DeletionModelAdmin = admin.ModelAdmin


@admin.register(Deletion)
class DeletionAdmin(DeletionModelAdmin):
    list_display = ["requested_at", "project", "kind", "subject_hash", "requested_by", "state", "requests", "erased_at"]
    list_filter = ["state", "kind", "project"]
    search_fields = ["subject_hash", "requested_by"]
    list_select_related = ["project"]
    exclude = ["subject"]

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Deletion | None = None) -> bool:
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Deletion | None = None) -> bool:
        return False
