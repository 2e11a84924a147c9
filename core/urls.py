"""Core's paths below `/api/llm/`."""

from __future__ import annotations

from django.urls import path

from core.audit_views import AuditView
from core.key_views import ApiKeyRotationView, ApiKeysView, ApiKeyView
from core.member_views import MembersView, MemberView

urlpatterns = [
    path("keys", ApiKeysView.as_view(), name="api-keys"),
    path("keys/<int:key_id>", ApiKeyView.as_view(), name="api-key"),
    path("keys/<int:key_id>/rotate", ApiKeyRotationView.as_view(), name="api-key-rotation"),
    path("members", MembersView.as_view(), name="members"),
    path("members/<int:member_id>", MemberView.as_view(), name="member"),
    path("audit", AuditView.as_view(), name="audit"),
]
