"""The endpoints of model groups."""

from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from gateway.model_groups.serializers import GroupChangeSerializer, ModelGroupSerializer, NewGroupSerializer
from gateway.model_groups.services import change_group, create_group, delete_group, get_group, list_groups


class ModelGroupViewSet(ProjectViewSet):
    lookup_url_kwarg = "group_name"

    @operation("listModelGroups", "List model groups", query=[PAGE], page=ModelGroupSerializer)
    def list(self, request: Request) -> Response:
        """The groups by name."""
        return self.page(list_groups(self.project_id), ModelGroupSerializer)

    @operation(
        "createModelGroup",
        "Make a model group",
        body=NewGroupSerializer,
        answer=ModelGroupSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The name can be called as a model within a second."""
        given = self.valid_body(NewGroupSerializer).validated_data
        row = create_group(project_id=self.project_id, actor=self.actor, **given)
        return Response(ModelGroupSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation("getModelGroup", "One model group", answer=ModelGroupSerializer, errors=[404])
    def retrieve(self, request: Request, group_name: str) -> Response:
        return Response(ModelGroupSerializer(get_group(self.project_id, group_name)).data)

    @operation(
        "replaceModelGroup",
        "Replace the members of a model group",
        body=GroupChangeSerializer,
        answer=ModelGroupSerializer,
        errors=[404],
    )
    def update(self, request: Request, group_name: str) -> Response:
        given = self.valid_body(GroupChangeSerializer).validated_data
        row = change_group(project_id=self.project_id, name=group_name, actor=self.actor, **given)
        return Response(ModelGroupSerializer(row).data)

    @operation("deleteModelGroup", "Delete a model group", status=204, errors=[404])
    def destroy(self, request: Request, group_name: str) -> Response:
        """Requests that name the group are answered with 404 from then on."""
        delete_group(project_id=self.project_id, name=group_name, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)
