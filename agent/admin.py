from __future__ import annotations

from django.contrib import admin

from agent.models import Conversation, Message
from agent.panel import admin as panel_admin  # noqa: F401 - registers itself
from core.site.admin import RightsAdmin, RightsInline


class MessageInline(RightsInline):
    model = Message
    readonly_fields = ["sequence", "role", "content", "tool_name", "is_error", "state", "error", "created_at"]
    fields = tuple(readonly_fields)
    ordering = ["sequence"]


@admin.register(Conversation)
class ConversationAdmin(RightsAdmin):
    list_display = ["__str__", "project", "created_by", "last_sequence", "updated_at"]
    list_select_related = ["project"]
    list_filter = ["project"]
    search_fields = ["title", "created_by"]
    readonly_fields = ["id", "project", "title", "created_by", "created_at", "updated_at"]
    fields = tuple(readonly_fields)
    inlines = [MessageInline]
    show_full_result_count = False
