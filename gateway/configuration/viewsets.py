from __future__ import annotations

from uuid import UUID

from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.openapi import operation
from core.wire.serializers import BodySerializer
from gateway.configuration.prompt_files import read_prompt
from prompts.selectors import get_config, get_version
from prompts.serializers import version_entry
from prompts.shapes import PromptVersionEntry
from prompts.transfer import push_version

_NAME_CHARACTERS = 1000


class PromptFileSerializer(BodySerializer):
    name = serializers.CharField(
        max_length=_NAME_CHARACTERS, help_text="The file's name, which ends in .yaml, .yml, .json or .md."
    )
    text = serializers.CharField(trim_whitespace=False, help_text="Its content, with the fields of a version.")


class PromptFileViewSet(ProjectViewSet):
    @operation(
        "pushPromptFile",
        "Add a file as a version",
        body=PromptFileSerializer,
        answer=PromptVersionEntry,
        also={(201, "application/json"): PromptVersionEntry},
        errors=[404],
    )
    @action(detail=False, methods=["post"], url_path="from-file")
    def from_file(self, request: Request, config_id: UUID) -> Response:
        """Returns the version that has the file's content: 200 for one that was there, 201 for one that was added. It
        does not become the active version, unless it is the first."""
        get_config(self.project_id, config_id)
        given = self.valid_body(PromptFileSerializer).validated_data
        content = read_prompt(given["name"], given["text"])
        row, added = push_version(project_id=self.project_id, config_id=config_id, content=content, actor=self.actor)
        shown = version_entry(get_version(self.project_id, config_id, row.pk))
        return Response(shown, status=status.HTTP_201_CREATED if added else status.HTTP_200_OK)
