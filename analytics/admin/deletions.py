"""The read-only admin page of deletions: who asked for them and their state. Ids are shown as hashes only."""

from __future__ import annotations

from django.contrib import admin

from analytics.models import Deletion
from core.site.admin import RightsAdmin


@admin.register(Deletion)
class DeletionAdmin(RightsAdmin):
    list_display = ["requested_at", "project", "kind", "subject_hash", "requested_by", "state", "requests", "erased_at"]
    list_filter = ["state", "kind", "project"]
    search_fields = ["subject_hash", "requested_by"]
    list_select_related = ["project"]
    exclude = ["subject"]
