"""The URLs of the prompts app below `/api/llm/`."""

from __future__ import annotations

from django.urls import path

from prompts.viewsets.labels import LabelMoveViewSet, LabelViewSet
from prompts.viewsets.prompts import ActivationViewSet, CheckView, ConfigViewSet, ExportView, ImportView, VersionViewSet

_CONFIG = "prompts/configs/<uuid:config_id>"
_VERSION = f"{_CONFIG}/versions/<uuid:version_id>"

urlpatterns = [
    path("prompts/configs", ConfigViewSet.as_view({"get": "list", "post": "create"}), name="prompt-configs"),
    path(
        _CONFIG,
        ConfigViewSet.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="prompt-config",
    ),
    path(f"{_CONFIG}/export", ConfigViewSet.as_view({"get": "export"}), name="prompt-config-export"),
    path(f"{_CONFIG}/activations", ActivationViewSet.as_view({"get": "list"}), name="prompt-activations"),
    path(f"{_CONFIG}/activations/undo", ConfigViewSet.as_view({"post": "undo"}), name="prompt-activations-undo"),
    path(
        f"{_CONFIG}/versions",
        VersionViewSet.as_view({"get": "list", "post": "create"}),
        name="prompt-versions",
    ),
    path(_VERSION, VersionViewSet.as_view({"get": "retrieve"}), name="prompt-version"),
    path(f"{_VERSION}/activate", VersionViewSet.as_view({"post": "activate"}), name="prompt-version-activate"),
    path(f"{_VERSION}/diff/<uuid:other_id>", VersionViewSet.as_view({"get": "diff"}), name="prompt-version-diff"),
    path(f"{_CONFIG}/labels", LabelViewSet.as_view({"get": "list"}), name="prompt-labels"),
    path(
        f"{_CONFIG}/labels/<str:label>",
        LabelViewSet.as_view({"put": "update", "delete": "destroy"}),
        name="prompt-label",
    ),
    path(f"{_CONFIG}/label-moves", LabelMoveViewSet.as_view({"get": "list"}), name="prompt-label-moves"),
    path("prompts/check", CheckView.as_view(), name="prompts-check"),
    path("prompts/export", ExportView.as_view(), name="prompts-export"),
    path("prompts/import", ImportView.as_view(), name="prompts-import"),
]
