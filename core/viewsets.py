from __future__ import annotations

from django.db import transaction
from django.shortcuts import get_object_or_404
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.viewsets import ProjectViewSet
from core.audit.selectors import audit_entries
from core.audit.serializers import AuditEntrySerializer, AuditParameters
from core.keys.serializers import (
    ApiKeyChangeSerializer,
    ApiKeySerializer,
    IssuedApiKeySerializer,
    NewApiKeySerializer,
    RotationSerializer,
)
from core.keys.services import change_key, issue_key, revoke_key, rotate_key
from core.members.invitations import invite, revoke_invitation, send_invitation
from core.members.serializers import (
    InvitationSerializer,
    IssuedInvitationSerializer,
    MemberRoleSerializer,
    MemberSerializer,
    NewInvitationSerializer,
    NewMemberSerializer,
)
from core.members.services import add_member, change_role, remove_member
from core.models import ApiKey, Invitation, Membership, Project
from core.openapi import PAGE, operation


class ApiKeyViewSet(ProjectViewSet):
    lookup_url_kwarg = "key_id"
    lookup_value_converter = "int"

    @operation("listApiKeys", "List API keys", query=[PAGE], page=ApiKeySerializer)
    def list(self, request: Request) -> Response:
        return self.page(ApiKey.objects.for_project(self.project_id), ApiKeySerializer)

    @operation(
        "issueApiKey",
        "Issue an API key",
        body=NewApiKeySerializer,
        answer=IssuedApiKeySerializer,
        status=201,
        errors=[404],
    )
    def create(self, request: Request) -> Response:
        """Makes a key. This answer alone holds the key itself."""
        given = self.valid_body(NewApiKeySerializer).validated_data
        row, key = issue_key(get_object_or_404(Project, pk=self.project_id), **given)
        return Response({**ApiKeySerializer(row).data, "key": key}, status=status.HTTP_201_CREATED)

    @operation("getApiKey", "One API key", answer=ApiKeySerializer, errors=[404])
    def retrieve(self, request: Request, key_id: int) -> Response:
        """The key with its limits, without the key itself."""
        row = get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=key_id)
        return Response(ApiKeySerializer(row).data)

    @operation("changeApiKey", "Change an API key", body=ApiKeyChangeSerializer, answer=ApiKeySerializer, errors=[404])
    def partial_update(self, request: Request, key_id: int) -> Response:
        """Changes the name, the expiry and the limits. Omitted fields stay as they are; scopes do not change."""
        given = self.valid_body(ApiKeyChangeSerializer).validated_data
        with transaction.atomic():
            row = self._locked(key_id)
            change_key(row, given)
        return Response(ApiKeySerializer(row).data)

    @operation("revokeApiKey", "Revoke an API key", status=204, errors=[404])
    def destroy(self, request: Request, key_id: int) -> Response:
        """Revokes a key: the row stays, so that its owner can be found later."""
        revoke_key(get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=key_id))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation(
        "rotateApiKey",
        "Give an API key a new secret",
        body=RotationSerializer,
        answer=IssuedApiKeySerializer,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, key_id: int) -> Response:
        """Makes a new secret, which this answer alone holds; the present one goes on until the grace is over. Id, use
        and limits stay the same."""
        given = self.valid_body(RotationSerializer).validated_data
        with transaction.atomic():
            row = self._locked(key_id)
            key = rotate_key(row, grace_seconds=given["grace_seconds"])
        return Response({**ApiKeySerializer(row).data, "key": key})

    def _locked(self, key_id: int) -> ApiKey:
        return get_object_or_404(ApiKey.objects.for_project(self.project_id).select_for_update(), pk=key_id)


class MemberViewSet(ProjectViewSet):
    lookup_url_kwarg = "member_id"
    lookup_value_converter = "int"

    @operation("listMembers", "List members", query=[PAGE], page=MemberSerializer)
    def list(self, request: Request) -> Response:
        """Lists the members. Superusers are not listed: they have every right in all projects."""
        rows = Membership.objects.for_project(self.project_id).select_related("user").order_by("id")
        return self.page(rows, MemberSerializer)

    @operation(
        "addMember",
        "Add a member",
        body=NewMemberSerializer,
        answer=MemberSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """Adds an account that may sign in to the admin, by its name."""
        given = self.valid_body(NewMemberSerializer).validated_data
        row = add_member(project_id=self.project_id, actor=self.actor, **given)
        return Response(MemberSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation(
        "changeMember",
        "Give a member another role",
        body=MemberRoleSerializer,
        answer=MemberSerializer,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, member_id: int) -> Response:
        """Changes a role. Answers 409 `last_administrator` when no administrator would be left in the project."""
        row = change_role(
            project_id=self.project_id,
            member_id=member_id,
            role=self.valid_body(MemberRoleSerializer).validated_data["role"],
            is_superuser=request.user.is_superuser,
        )
        return Response(MemberSerializer(row).data)

    @operation("removeMember", "Take a member out", status=204, errors=[404, 409])
    def destroy(self, request: Request, member_id: int) -> Response:
        """Removes a member and keeps the account. Answers 409 `last_administrator` as for a change of role."""
        remove_member(project_id=self.project_id, member_id=member_id, is_superuser=request.user.is_superuser)
        return Response(status=status.HTTP_204_NO_CONTENT)


class InvitationViewSet(ProjectViewSet):
    lookup_url_kwarg = "invitation_id"
    lookup_value_converter = "int"

    @operation("listInvitations", "List open invitations", query=[PAGE], page=InvitationSerializer)
    def list(self, request: Request) -> Response:
        """The invitations that nobody has taken yet, without their links."""
        return self.page(Invitation.objects.for_project(self.project_id), InvitationSerializer)

    @operation(
        "createInvitation",
        "Invite a person",
        body=NewInvitationSerializer,
        answer=IssuedInvitationSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """Makes a link that works once and ends after a week; this answer alone holds it. It is sent by mail where a
        mail server is set. The role also waits for the first sign-in at a provider that has verified the address."""
        given = self.valid_body(NewInvitationSerializer).validated_data
        row, link = invite(project_id=self.project_id, actor=self.actor, **given)
        shown = {**InvitationSerializer(row).data, "link": link, "is_sent": send_invitation(row, link)}
        return Response(shown, status=status.HTTP_201_CREATED)

    @operation("deleteInvitation", "Take an invitation back", status=204, errors=[404])
    def destroy(self, request: Request, invitation_id: int) -> Response:
        """The link leads to nothing from then on, and no role waits."""
        revoke_invitation(self.project_id, invitation_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditViewSet(ProjectViewSet):
    @operation("listAudit", "Who changed what", query=[PAGE, AuditParameters], page=AuditEntrySerializer)
    def list(self, request: Request) -> Response:
        """The changes made through the API, the pages and commands, the latest first."""
        given = self.valid_query(AuditParameters).validated_data
        return self.page(audit_entries(self.project_id, given), AuditEntrySerializer)
