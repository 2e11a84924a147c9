"""Conversations in the admin, to look at and to delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from agent.models import Conversation, Message
from agent.panel import admin as panel_admin  # noqa: F401 - registers itself

if TYPE_CHECKING:
    # Generic in the stubs only.
    ConversationModelAdmin = admin.ModelAdmin[Conversation]
    MessageTable = admin.TabularInline[Message, Conversation]
else:
    ConversationModelAdmin = admin.ModelAdmin
    MessageTable = admin.TabularInline


class MessageInline(MessageTable):
    model = Message
    readonly_fields = ["sequence", "role", "content", "tool_name", "is_error", "state", "error", "created_at"]
    fields = tuple(readonly_fields)
    ordering = ["sequence"]
    extra = 0
    can_delete = False

    @override
    def has_add_permission(self, request: HttpRequest, obj: Conversation | None = None) -> bool:
        return False


@admin.register(Conversation)
class ConversationAdmin(ConversationModelAdmin):
    list_display = ["__str__", "project", "created_by", "last_sequence", "updated_at"]
    list_select_related = ["project"]
    list_filter = ["project"]
    search_fields = ["title", "created_by"]
    readonly_fields = ["id", "project", "title", "created_by", "created_at", "updated_at"]
    fields = tuple(readonly_fields)
    inlines = [MessageInline]
    show_full_result_count = False

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
