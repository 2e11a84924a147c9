"""Scores and feedback in the admin, to look at: they are made over the API, and deleted with what they speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from analytics.models import Feedback, Score

if TYPE_CHECKING:
    AnyModelAdmin = admin.ModelAdmin[Any]  # generic in the stubs only
else:
    AnyModelAdmin = admin.ModelAdmin

_PER_PAGE = 50


class _ReadOnlyAdmin(AnyModelAdmin):
    list_per_page = _PER_PAGE
    # Counting a million rows for a line at the bottom of the page would take longer than the page.
    show_full_result_count = False
    list_select_related = ["project"]

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Score)
class ScoreAdmin(_ReadOnlyAdmin):
    list_display = ["score_name", "score_value", "score_type", "evaluator_type", "request_id", "project", "created_at"]
    list_filter = ["project", "score_type", "created_at"]
    search_fields = ["=request_id", "=score_name", "=score_id", "=evaluator_type"]
    search_help_text = "A request id, a score's name or id, or an evaluator type, in full."
    fields = [
        "project", "id", "score_id", "request_id", "score_name", "score_value", "score_type", "score_label", "reason",
        "evaluator_type", "created_by", "created_at", "updated_at", "revision", "copy_due_at",
    ]  # fmt: skip


@admin.register(Feedback)
class FeedbackAdmin(_ReadOnlyAdmin):
    list_display = ["session_id", "score", "text_start", "project", "created_at"]
    list_filter = ["project", "score", "created_at"]
    search_fields = ["=session_id"]
    search_help_text = "A session id in full."
    fields = ["project", "id", "session_id", "score", "text", "created_by", "created_at", "copy_due_at"]

    @admin.display(description="text")
    def text_start(self, row: Feedback) -> str:
        shown = 100
        return row.text if len(row.text) <= shown else f"{row.text[:shown]}…"
