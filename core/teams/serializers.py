from __future__ import annotations

from rest_framework import serializers

from core.caller_limits import MAX_BUDGET_USD, MAX_CONCURRENT_REQUESTS
from core.keys.serializers import budget_field, count_field
from core.keys.services import LIMIT_FIELDS
from core.models import NAME_CHARACTERS, Team, TeamMember
from core.teams.services import NO_TEAM
from core.wire.fields import MoneyField
from core.wire.serializers import BodySerializer, RowSerializer, StrictSerializer

MAX_MEMBERS = 500


class TeamSerializer(RowSerializer[Team]):
    monthly_budget_usd = MoneyField(read_only=True, max_value=MAX_BUDGET_USD, allow_null=True)
    total_budget_usd = MoneyField(read_only=True, max_value=MAX_BUDGET_USD, allow_null=True)
    key_count = serializers.IntegerField(read_only=True, help_text="Keys that are not revoked.")
    member_count = serializers.IntegerField(read_only=True)

    class Meta:
        model = Team
        fields = ["id", "name", *LIMIT_FIELDS, "key_count", "member_count", "created_at"]


class TeamChangeSerializer(BodySerializer):
    """The columns to change; an omitted one stays as it is."""

    written_back = frozenset({"id", "key_count", "member_count", "created_at", "warnings"})

    name = serializers.CharField(required=False, max_length=NAME_CHARACTERS)
    monthly_budget_usd = budget_field("Per calendar month, UTC;")
    total_budget_usd = budget_field("In all;")
    rate_limit_rpm = count_field("Requests per minute;")
    rate_limit_tpm = count_field("Tokens per minute;")
    max_concurrent_requests = count_field("Requests at the same time;", MAX_CONCURRENT_REQUESTS)


class NewTeamSerializer(TeamChangeSerializer):
    written_back = frozenset()

    name = serializers.CharField(max_length=NAME_CHARACTERS)


class TeamDeletionParameters(serializers.Serializer[Team]):
    move_keys_to = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=20,
        help_text=f"The id of the team that gets the keys, or `{NO_TEAM}`. Without it a team with keys is not deleted.",
    )


class TeamMemberSerializer(RowSerializer[TeamMember]):
    username = serializers.CharField(source="membership.user.username", read_only=True)
    role = serializers.CharField(source="membership.role", read_only=True)

    class Meta:
        model = TeamMember
        fields = ["username", "role", "is_lead"]


class OneTeamMemberSerializer(StrictSerializer):
    written_back = frozenset({"role"})

    username = serializers.CharField(max_length=150)
    is_lead = serializers.BooleanField(required=False, default=False)


class TeamMembersSerializer(BodySerializer):
    is_needed = True

    members = serializers.ListField(child=OneTeamMemberSerializer(), max_length=MAX_MEMBERS)
