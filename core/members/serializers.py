from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.models import Invitation, Membership
from core.roles import Role
from core.wire.serializers import BodySerializer, RowSerializer


class RoleField(serializers.ChoiceField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=Role.choices, **kwargs)

    def to_internal_value(self, data: Any) -> Role:
        return Role(super().to_internal_value(data))


class MemberSerializer(RowSerializer[Membership]):
    username = serializers.CharField(source="user.username", read_only=True)

    class Meta:
        model = Membership
        fields = ["id", "username", "role", "created_by", "created_at"]


class NewMemberSerializer(BodySerializer):
    username = serializers.CharField(max_length=150)
    role = RoleField()


class MemberRoleSerializer(BodySerializer):
    written_back = frozenset(MemberSerializer.Meta.fields) - {"role"}

    role = RoleField()


class InvitationSerializer(RowSerializer[Invitation]):
    class Meta:
        model = Invitation
        fields = ["id", "email", "role", "expires_at", "created_by", "created_at"]


class IssuedInvitationSerializer(InvitationSerializer):
    """An invitation together with its link, which is shown only here; `is_sent` says whether it went out by mail."""

    link = serializers.CharField(read_only=True)
    is_sent = serializers.BooleanField(read_only=True)

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "link", "is_sent"]


class NewInvitationSerializer(BodySerializer):
    email = serializers.EmailField(max_length=254)
    role = RoleField()
