from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.roles import Right
from prompts import selectors, services, shapes
from prompts.content.checks import check_draft
from prompts.content.composition import Library
from prompts.filters import ActivationFilter, ConfigFilter, VersionFilter
from prompts.serializers import (
    ActivationSerializer,
    CheckSerializer,
    ConfigChangeSerializer,
    ConfigSerializer,
    ImportSerializer,
    NewConfigSerializer,
    NewVersionSerializer,
    ReasonSerializer,
    check_body,
    import_body,
    version_entry,
)
from prompts.transfer import export_prompts, import_prompts
from prompts.viewsets.details import version_detail, version_diff


class ConfigViewSet(ProjectViewSet):
    lookup_url_kwarg = "config_id"
    lookup_value_converter = "uuid"
    filterset_class = ConfigFilter

    @operation("listPromptConfigs", "List prompt configs", query=[PAGE], page=ConfigSerializer)
    def list(self, request: Request) -> Response:
        return self.page(selectors.list_configs(self.project_id), ConfigSerializer)

    @operation(
        "createPromptConfig",
        "Make a prompt config",
        body=NewConfigSerializer,
        answer=ConfigSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        fields = self.valid_body(NewConfigSerializer).validated_data
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
        fields = self.valid_body(ConfigChangeSerializer).validated_data
        services.update_config(project_id=self.project_id, config_id=config_id, actor=self.actor, **fields)
        return Response(self._shown(config_id))

    @operation("deletePromptConfig", "Delete a prompt config and its versions", status=204, errors=[404, 409])
    def destroy(self, request: Request, config_id: UUID) -> Response:
        services.delete_config(project_id=self.project_id, config_id=config_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("exportPromptConfig", "One config as a document", answer=shapes.PromptDocument, errors=[404])
    @action(detail=True)
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
    @action(detail=True, methods=["post"], url_path="activations/undo")
    def undo(self, request: Request, config_id: UUID) -> Response:
        """Reverts the latest activation and returns the config."""
        fields = self.valid_body(ReasonSerializer).validated_data
        services.undo_activation(project_id=self.project_id, config_id=config_id, actor=self.actor, **fields)
        return Response(self._shown(config_id))

    def _shown(self, config_id: UUID) -> Any:
        return ConfigSerializer(selectors.get_config(self.project_id, config_id)).data


class VersionViewSet(ProjectViewSet):
    lookup_url_kwarg = "version_id"
    lookup_value_converter = "uuid"
    filterset_class = VersionFilter

    @operation(
        "listPromptVersions",
        "List versions of a config",
        query=[PAGE],
        page=shapes.PromptVersionEntry,
        errors=[404],
    )
    def list(self, request: Request, config_id: UUID) -> Response:
        rows = self.rows_of_page(selectors.list_versions(self.project_id, config_id))
        return self.get_paginated_response([version_entry(row) for row in rows])

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
        content = self.valid_body(NewVersionSerializer).content()
        row = services.add_version(project_id=self.project_id, config_id=config_id, content=content, actor=self.actor)
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
    @action(detail=True, methods=["post"])
    def activate(self, request: Request, config_id: UUID, version_id: UUID) -> Response:
        fields = self.valid_body(ReasonSerializer).validated_data
        services.activate_version(
            project_id=self.project_id, config_id=config_id, version_id=version_id, actor=self.actor, **fields
        )
        return Response(self._shown(config_id, version_id))

    @operation("diffPromptVersions", "What differs between two versions", answer=shapes.PromptDiff, errors=[404])
    @action(detail=True, url_path="diff/<uuid:other_id>")
    def diff(self, request: Request, config_id: UUID, version_id: UUID, other_id: UUID) -> Response:
        """Returns the changes from the first version in the path to the second."""
        return Response(version_diff(self.project_id, config_id, version_id, other_id))

    def _shown(self, config_id: UUID, version_id: UUID) -> Any:
        return version_entry(selectors.get_version(self.project_id, config_id, version_id))


class ActivationViewSet(ProjectViewSet):
    filterset_class = ActivationFilter

    @operation(
        "listActivations",
        "Which version was active when",
        query=[PAGE],
        page=ActivationSerializer,
        errors=[404],
    )
    def list(self, request: Request, config_id: UUID) -> Response:
        return self.page(selectors.list_activations(self.project_id, config_id), ActivationSerializer)


class PromptViewSet(ProjectViewSet):
    @operation("checkPrompt", "Check a version before it is stored", body=CheckSerializer, answer=shapes.PromptCheck)
    @action(detail=False, methods=["post"])
    def check(self, request: Request) -> Response:
        """Nothing is stored. The answer is 200 also when the version would be refused: `valid` says so, `findings` say
        why."""
        draft = self.valid_body(CheckSerializer).draft()
        return Response(check_body(check_draft(draft, Library(self.project_id))))

    @operation("exportPrompts", "All prompts as a document", answer=shapes.PromptDocument)
    @action(detail=False)
    def export(self, request: Request) -> Response:
        return Response(export_prompts(self.project_id))

    @operation(
        "importPrompts",
        "Take in a document of prompts",
        body=ImportSerializer,
        answer=shapes.PromptImport,
        errors=[409],
    )
    @action(detail=False, methods=["post"], url_path="import")
    def import_document(self, request: Request) -> Response:
        given = self.valid_body(ImportSerializer)
        dry_run = given.validated_data["dry_run"]
        outcomes = import_prompts(
            project_id=self.project_id,
            configs=given.imported(),
            actor=self.actor,
            is_administrator=Right.ADMINISTER in self.access.rights,
            dry_run=dry_run,
        )
        return Response(import_body(outcomes, dry_run=dry_run))
