"""The management API of a project's members, for its administrators."""

from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.members import add_member, change_role, remove_member
from core.models import Membership
from core.openapi import PAGE, operation
from core.pagination import LimitOffset
from core.serializers import MemberRoleSerializer, MemberSerializer, NewMemberSerializer
from core.views import ProjectAPIView


class MembersView(ProjectAPIView):
    @operation("listMembers", "List members", query=[PAGE], page=MemberSerializer)
    def get(self, request: Request) -> Response:
        """Lists the members. Superusers are not listed: they have every right in all projects."""
        paginator = LimitOffset()
        rows = Membership.objects.for_project(self.project_id).select_related("user").order_by("id")
        page = paginator.paginate_queryset(rows, request, self)
        return paginator.get_paginated_response(MemberSerializer(page, many=True).data)

    @operation(
        "addMember",
        "Add a member",
        body=NewMemberSerializer,
        answer=MemberSerializer,
        status=201,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        """Adds an account that may sign in to the admin, by its name."""
        serializer = NewMemberSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = add_member(project_id=self.project_id, actor=self.actor, **serializer.validated_data)
        return Response(MemberSerializer(row).data, status=status.HTTP_201_CREATED)


class MemberView(ProjectAPIView):
    @operation(
        "changeMember",
        "Give a member another role",
        body=MemberRoleSerializer,
        answer=MemberSerializer,
        errors=[404, 409],
    )
    def patch(self, request: Request, member_id: int) -> Response:
        """Changes a role. Answers 409 `last_administrator` when no administrator would be left in the project."""
        serializer = MemberRoleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = change_role(
            project_id=self.project_id,
            member_id=member_id,
            role=serializer.validated_data["role"],
            is_superuser=request.user.is_superuser,
        )
        return Response(MemberSerializer(row).data)

    @operation("removeMember", "Take a member out", status=204, errors=[404, 409])
    def delete(self, request: Request, member_id: int) -> Response:
        """Removes a member and keeps the account. Answers 409 `last_administrator` as for a change of role."""
        remove_member(project_id=self.project_id, member_id=member_id, is_superuser=request.user.is_superuser)
        return Response(status=status.HTTP_204_NO_CONTENT)
