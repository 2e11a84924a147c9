"""The management API of prompts: configs, versions, activations, export and import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import GenericViewSet
from typing_extensions import override

from core.openapi import PAGE, operation
from core.roles import Right
from core.views import ProjectAPIView
from prompts import selectors, services, shapes
from prompts.content.checks import check_body, check_draft
from prompts.content.composition import Library
from prompts.details import version_detail, version_diff
from prompts.filters import ActivationFilter, ConfigFilter, VersionFilter
from prompts.models import PromptActivation, PromptConfig, PromptVersion
from prompts.serializers import (
    ActivationSerializer,
    CheckSerializer,
    ConfigChangeSerializer,
    ConfigSerializer,
    ImportSerializer,
    NewConfigSerializer,
    NewVersionSerializer,
    ReasonSerializer,
    VersionSerializer,
    import_body,
)
from prompts.transfer import export_prompts, import_prompts

if TYPE_CHECKING:
    from django.db.models import QuerySet

    ConfigViews = GenericViewSet[PromptConfig]
    VersionViews = GenericViewSet[PromptVersion]
    ActivationViews = GenericViewSet[PromptActivation]
else:
    ConfigViews = VersionViews = ActivationViews = GenericViewSet


class ConfigViewSet(ConfigViews, ProjectAPIView):
    serializer_class = ConfigSerializer
    filterset_class = ConfigFilter

    @override
    def get_queryset(self) -> QuerySet[PromptConfig]:
        return selectors.list_configs(self.project_id)

    @operation("listPromptConfigs", "List prompt configs", query=[PAGE], page=ConfigSerializer)
    def list(self, request: Request) -> Response:
        return _page(self, self.get_queryset())

    @operation(
        "createPromptConfig",
        "Make a prompt config",
        body=NewConfigSerializer,
        answer=ConfigSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        fields = _valid(NewConfigSerializer(data=request.data))
        row = services.create_config(project_id=self.project_id, actor=self.actor, **fields)
        return Response(self._shown(row.pk), status=status.HTTP_201_CREATED)

    @operation("getPromptConfig", "One prompt config", answer=ConfigSerializer, errors=[404])
    def retrieve(self, request: Request, config_id: UUID) -> Response:
        return Response(self._shown(config_id))

    @operation(
        "updatePromptConfig",
        "Rename or describe a prompt config",
        body=ConfigChangeSerializer,
        answer=ConfigSerializer,
        errors=[404, 409],
    )
    def update(self, request: Request, config_id: UUID) -> Response:
        fields = _valid(ConfigChangeSerializer(data=request.data))
        services.update_config(project_id=self.project_id, config_id=config_id, actor=self.actor, **fields)
        return Response(self._shown(config_id))

    @operation("deletePromptConfig", "Delete a prompt config and its versions", status=204, errors=[404, 409])
    def destroy(self, request: Request, config_id: UUID) -> Response:
        services.delete_config(project_id=self.project_id, config_id=config_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("exportPromptConfig", "One config as a document", answer=shapes.PromptDocument, errors=[404])
    def export(self, request: Request, config_id: UUID) -> Response:
        selectors.get_config(self.project_id, config_id)
        return Response(export_prompts(self.project_id, config_id))

    @operation(
        "undoActivation",
        "Make the version active that was active before",
        body=ReasonSerializer,
        answer=ConfigSerializer,
        errors=[404, 409],
    )
    def undo(self, request: Request, config_id: UUID) -> Response:
        """Reverts the latest activation and returns the config."""
        fields = _valid(ReasonSerializer(data=request.data))
        services.undo_activation(project_id=self.project_id, config_id=config_id, actor=self.actor, **fields)
        return Response(self._shown(config_id))

    def _shown(self, config_id: UUID) -> Any:
        return ConfigSerializer(selectors.get_config(self.project_id, config_id)).data


class VersionViewSet(VersionViews, ProjectAPIView):
    serializer_class = VersionSerializer
    filterset_class = VersionFilter

    @operation(
        "listPromptVersions",
        "List versions of a config",
        query=[PAGE],
        page=shapes.PromptVersionEntry,
        errors=[404],
    )
    def list(self, request: Request, config_id: UUID) -> Response:
        return _page(self, selectors.list_versions(self.project_id, config_id))

    @operation(
        "createPromptVersion",
        "Add a version to a config",
        body=NewVersionSerializer,
        answer=shapes.PromptVersionEntry,
        status=201,
        errors=[404, 409],
    )
    def create(self, request: Request, config_id: UUID) -> Response:
        # An unknown config is reported before any error of the body.
        selectors.get_config(self.project_id, config_id)
        serializer = NewVersionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = services.add_version(
            project_id=self.project_id, config_id=config_id, content=serializer.content(), actor=self.actor
        )
        return Response(self._shown(config_id, row.pk), status=status.HTTP_201_CREATED)

    @operation(
        "getPromptVersion",
        "One version, and how much it is used",
        answer=shapes.PromptVersionDetail,
        errors=[404],
    )
    def retrieve(self, request: Request, config_id: UUID, version_id: UUID) -> Response:
        return Response(version_detail(self.project_id, config_id, version_id))

    @operation(
        "activatePromptVersion",
        "Make a version the active one",
        body=ReasonSerializer,
        answer=shapes.PromptVersionEntry,
        errors=[404, 409],
    )
    def activate(self, request: Request, config_id: UUID, version_id: UUID) -> Response:
        fields = _valid(ReasonSerializer(data=request.data))
        services.activate_version(
            project_id=self.project_id, config_id=config_id, version_id=version_id, actor=self.actor, **fields
        )
        return Response(self._shown(config_id, version_id))

    @operation("diffPromptVersions", "What differs between two versions", answer=shapes.PromptDiff, errors=[404])
    def diff(self, request: Request, config_id: UUID, version_id: UUID, other_id: UUID) -> Response:
        """Returns the changes from the first version in the path to the second."""
        return Response(version_diff(self.project_id, config_id, version_id, other_id))

    def _shown(self, config_id: UUID, version_id: UUID) -> Any:
        return VersionSerializer(selectors.get_version(self.project_id, config_id, version_id)).data


class ActivationViewSet(ActivationViews, ProjectAPIView):
    serializer_class = ActivationSerializer
    filterset_class = ActivationFilter

    @operation(
        "listActivations",
        "Which version was active when",
        query=[PAGE],
        page=ActivationSerializer,
        errors=[404],
    )
    def list(self, request: Request, config_id: UUID) -> Response:
        return _page(self, selectors.list_activations(self.project_id, config_id))


class CheckView(ProjectAPIView):
    @operation("checkPrompt", "Check a version before it is stored", body=CheckSerializer, answer=shapes.PromptCheck)
    def post(self, request: Request) -> Response:
        """Nothing is stored. The answer is 200 also when the version would be refused: `valid` says so, `findings` say
        why."""
        serializer = CheckSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(check_body(check_draft(serializer.draft(), Library(self.project_id))))


class ExportView(ProjectAPIView):
    @operation("exportPrompts", "All prompts as a document", answer=shapes.PromptDocument)
    def get(self, request: Request) -> Response:
        return Response(export_prompts(self.project_id))


class ImportView(ProjectAPIView):
    @operation(
        "importPrompts",
        "Take in a document of prompts",
        body=ImportSerializer,
        answer=shapes.PromptImport,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        serializer = ImportSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        dry_run = serializer.validated_data["dry_run"]
        outcomes = import_prompts(
            project_id=self.project_id,
            configs=serializer.imported(),
            actor=self.actor,
            is_administrator=Right.ADMINISTER in self.access.rights,
            dry_run=dry_run,
        )
        return Response(import_body(outcomes, dry_run=dry_run))


def _page(view: GenericViewSet[Any], rows: QuerySet[Any]) -> Response:
    page = view.paginate_queryset(view.filter_queryset(rows))
    return view.get_paginated_response(view.get_serializer(page, many=True).data)


def _valid(serializer: BaseSerializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
