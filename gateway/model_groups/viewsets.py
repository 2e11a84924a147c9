"""The endpoints of model groups."""

from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset
from gateway.model_groups.serializers import GroupChangeSerializer, ModelGroupSerializer, NewGroupSerializer
from gateway.model_groups.services import change_group, create_group, delete_group, get_group, list_groups


class ModelGroupsView(ProjectAPIView):
    @operation("listModelGroups", "List model groups", query=[PAGE], page=ModelGroupSerializer)
    def get(self, request: Request) -> Response:
        """The groups by name."""
        paginator = LimitOffset()
        rows = paginator.paginate_queryset(list_groups(self.project_id), request, self)
        return paginator.get_paginated_response(ModelGroupSerializer(rows, many=True).data)

    @operation(
        "createModelGroup",
        "Make a model group",
        body=NewGroupSerializer,
        answer=ModelGroupSerializer,
        status=201,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        """The name can be called as a model within a second."""
        given = NewGroupSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        row = create_group(project_id=self.project_id, actor=self.actor, **given.validated_data)
        return Response(ModelGroupSerializer(row).data, status=status.HTTP_201_CREATED)


class ModelGroupView(ProjectAPIView):
    @operation("getModelGroup", "One model group", answer=ModelGroupSerializer, errors=[404])
    def get(self, request: Request, group_name: str) -> Response:
        return Response(ModelGroupSerializer(get_group(self.project_id, group_name)).data)

    @operation(
        "replaceModelGroup",
        "Replace the members of a model group",
        body=GroupChangeSerializer,
        answer=ModelGroupSerializer,
        errors=[404],
    )
    def put(self, request: Request, group_name: str) -> Response:
        given = GroupChangeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        row = change_group(project_id=self.project_id, name=group_name, actor=self.actor, **given.validated_data)
        return Response(ModelGroupSerializer(row).data)

    @operation("deleteModelGroup", "Delete a model group", status=204, errors=[404])
    def delete(self, request: Request, group_name: str) -> Response:
        """Requests that name the group are answered with 404 from then on."""
        delete_group(project_id=self.project_id, name=group_name, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)
