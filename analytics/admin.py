"""Scores, feedback and deletions in the admin, read-only, and the request log in its index.

Scores and feedback are created over the API and deleted with their requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern

from analytics.identifiers import gateway_id
from analytics.models import Deletion, Evaluator, EvaluatorVersion, Feedback, Requests, Score, TraceDestination
from core.rights.asking import may
from core.roles import Right
from core.site.admin import RightsAdmin
from core.ui.marks import id_link
from core.ui.navigation import address_of

_PER_PAGE = 50
_SHOWN = 100


class _ReadOnlyAdmin(RightsAdmin):
    list_per_page = _PER_PAGE
    # Counting a million rows for a line at the bottom of the page would take longer than the page.
    show_full_result_count = False
    list_select_related = ["project"]
    # `text` is the name of the field that holds a text of people or models.
    text: ClassVar[str]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = list(super().get_fields(request, obj))
        return fields if self.permits(request, Right.READ_CONTENT, obj) else [f for f in fields if f != self.text]


@admin.register(Score)
class ScoreAdmin(_ReadOnlyAdmin):
    text = "reason"
    list_display = ["score_name", "score_value", "score_type", "evaluator_type", "request", "project", "created_at"]
    list_filter = ["project", "score_type", "created_at"]
    search_fields = ["=request_id", "=score_name", "=score_id", "=evaluator_type"]
    search_help_text = "A request id, a score's name or id, or an evaluator type, in full."
    fields = [
        "project", "id", "score_id", "request_id", "score_name", "score_value", "score_type", "score_label", "reason",
        "evaluator_type", "judge_model", "created_by", "created_at", "updated_at", "revision", "copy_due_at",
    ]  # fmt: skip

    @admin.display(description="request", ordering="request_id")
    def request(self, row: Score) -> str:
        known = gateway_id(row.request_id)
        return id_link(address_of("analytics_requests_detail", row.project_id, known) if known else "", row.request_id)


@admin.register(Feedback)
class FeedbackAdmin(_ReadOnlyAdmin):
    text = "text"
    list_display = ["score", "session", "project", "created_at"]
    list_filter = ["project", "score", "created_at"]
    search_fields = ["=session_id"]
    search_help_text = "A session id in full."
    fields = [
        "project", "id", "session_id", "request_id", "score", "text", "edited", "created_by", "created_at",
        "copy_due_at",
    ]  # fmt: skip

    def get_list_display(self, request: HttpRequest) -> Any:
        score, session, *others = super().get_list_display(request)
        return [score, session, _text_start(request), *others]

    @admin.display(description="session", ordering="session_id")
    def session(self, row: Feedback) -> str:
        return id_link(address_of("session", row.project_id, row.session_id), row.session_id)


def _text_start(request: HttpRequest) -> Callable[[Feedback], str]:
    """The column is empty in projects whose content the user may not read."""

    @admin.display(description="text")
    def text_start(row: Feedback) -> str:
        if not may(request.user, Right.READ_CONTENT, row.project_id):
            return ""
        return row.text if len(row.text) <= _SHOWN else f"{row.text[:_SHOWN]}…"

    return text_start


@admin.register(Evaluator)
class EvaluatorAdmin(RightsAdmin):
    page_of_changes = "evaluators"
    list_display = ["name", "project", "kind", "state", "created_by", "created_at"]
    list_filter = ["project", "kind", "state"]
    search_fields = ["name", "description"]
    list_select_related = ["project"]
    fields = ["project", "id", "name", "description", "kind", "state", "created_by", "created_at"]


@admin.register(EvaluatorVersion)
class EvaluatorVersionAdmin(RightsAdmin):
    page_of_changes = "evaluators"
    project_lookup = "evaluator__project"
    list_display = ["number", "evaluator", "kind", "good_from", "created_by", "created_at"]
    list_filter = ["evaluator__project", "evaluator__kind"]
    search_fields = ["evaluator__name"]
    list_select_related = ["evaluator"]
    fields = ["evaluator", "id", "number", "definition", "good_from", "created_by", "created_at"]

    @admin.display(ordering="evaluator__kind")
    def kind(self, version: EvaluatorVersion) -> str:
        return version.evaluator.kind


@admin.register(Deletion)
class DeletionAdmin(RightsAdmin):
    # The id whose data was deleted is shown as a hash only.
    list_display = ["requested_at", "project", "kind", "subject_hash", "requested_by", "state", "requests", "erased_at"]
    list_filter = ["state", "kind", "project"]
    search_fields = ["subject_hash", "requested_by"]
    list_select_related = ["project"]
    exclude = ["subject"]


@admin.register(TraceDestination)
class TraceDestinationAdmin(RightsAdmin):
    page_of_changes = "trace_destinations"
    list_display = ["name", "project", "endpoint", "enabled", "sampling_ratio", "include_content", "updated_at"]
    list_filter = ["project", "enabled"]
    search_fields = ["name", "endpoint"]
    list_select_related = ["project"]


@admin.register(Requests)
class RequestsAdmin(RightsAdmin):
    # The model has no rows that lead to a project, so the pages ask for projects themselves.
    project_lookup = ""

    def get_urls(self) -> list[URLPattern]:
        """Returns no pages: `analytics_requests_changelist` is one of the console."""
        return []
