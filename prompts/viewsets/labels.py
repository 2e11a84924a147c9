from __future__ import annotations

from typing import Any
from uuid import UUID

from django_filters import rest_framework as filters
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.roles import Right
from core.wire.serializers import BodySerializer, RowSerializer
from prompts.labels import list_label_moves, list_labels, remove_label, set_label
from prompts.models import LABEL_CHARACTERS, REASON_CHARACTERS, PromptLabel, PromptLabelMove


class LabelSerializer(RowSerializer[PromptLabel]):
    version_id = serializers.UUIDField(read_only=True)
    version_number = serializers.IntegerField(source="version.number", read_only=True)

    class Meta:
        model = PromptLabel
        fields = ["name", "version_id", "version_number", "is_protected", "updated_at"]


class LabelChangeSerializer(BodySerializer):
    """The body of PUT on a label; `is_protected` that is left out stays as it is."""

    written_back = frozenset({"name", "version_id", "updated_at"})

    version_number = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    is_protected = serializers.BooleanField(required=False, allow_null=True, default=None)
    reason = serializers.CharField(max_length=REASON_CHARACTERS, required=False, allow_blank=True, default="")


class LabelRemovalSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=REASON_CHARACTERS, required=False, allow_blank=True, default="")


class LabelMoveSerializer(RowSerializer[PromptLabelMove]):
    from_version = serializers.IntegerField(source="from_version.number", default=None, read_only=True, allow_null=True)
    to_version = serializers.IntegerField(source="to_version.number", default=None, read_only=True, allow_null=True)

    class Meta:
        model = PromptLabelMove
        fields = ["id", "label", "from_version", "to_version", "actor", "reason", "created_at"]


class LabelMoveFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    label = filters.CharFilter(max_length=LABEL_CHARACTERS)

    class Meta:
        model = PromptLabelMove
        fields: tuple[str, ...] = ()


class LabelViewSet(ProjectViewSet):
    lookup_url_kwarg = "label"

    @operation("listPromptLabels", "List the labels of a config", query=[PAGE], page=LabelSerializer, errors=[404])
    def list(self, request: Request, config_id: UUID) -> Response:
        return self.page(list_labels(self.project_id, config_id), LabelSerializer)

    @operation(
        "putPromptLabel",
        "Make or move a label",
        body=LabelChangeSerializer,
        answer=LabelSerializer,
        errors=[404],
    )
    def update(self, request: Request, config_id: UUID, label: str) -> Response:
        """Only administrators move a protected label, protect one, or end its protection."""
        given = self.valid_body(LabelChangeSerializer).validated_data
        row = set_label(
            project_id=self.project_id,
            config_id=config_id,
            name=label,
            number=given["version_number"],
            actor=self.actor,
            is_administrator=Right.ADMINISTER in self.access.rights,
            reason=given["reason"],
            is_protected=given["is_protected"],
        )
        return Response(LabelSerializer(row).data)

    @operation("deletePromptLabel", "Remove a label", query=[LabelRemovalSerializer], status=204, errors=[404])
    def destroy(self, request: Request, config_id: UUID, label: str) -> Response:
        remove_label(
            project_id=self.project_id,
            config_id=config_id,
            name=label,
            actor=self.actor,
            is_administrator=Right.ADMINISTER in self.access.rights,
            reason=self.valid_query(LabelRemovalSerializer).validated_data["reason"],
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class LabelMoveViewSet(ProjectViewSet):
    filterset_class = LabelMoveFilter

    @operation(
        "listPromptLabelMoves",
        "Which label was at which version when",
        query=[PAGE],
        page=LabelMoveSerializer,
        errors=[404],
    )
    def list(self, request: Request, config_id: UUID) -> Response:
        return self.page(list_label_moves(self.project_id, config_id), LabelMoveSerializer)
