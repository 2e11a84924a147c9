from __future__ import annotations

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.openapi import PAGE, operation
from core.resources.viewsets import Operation, ResourceViewSet
from core.teams.serializers import (
    NewTeamSerializer,
    TeamChangeSerializer,
    TeamDeletionParameters,
    TeamMemberSerializer,
    TeamMembersSerializer,
)
from core.teams.services import TEAMS, list_members, replace_members
from gateway.teams.serializers import WarnedTeamSerializer


class TeamViewSet(ResourceViewSet):
    lookup_url_kwarg = "team_id"
    lookup_value_converter = "int"
    noun = "Team"
    resource = TEAMS
    shown = WarnedTeamSerializer
    new = NewTeamSerializer
    changed = TeamChangeSerializer
    operations = {
        "list": Operation(
            "List teams",
            "The teams by name. What they use of their limits is in `GET usage`, what they spent in"
            " `GET metrics/cost`.",
        ),
        "create": Operation("Make a team", "Keys come into the team by their field `team_id`."),
        "retrieve": Operation("One team"),
        "partial_update": Operation("Change a team", "Omitted fields stay as they are."),
    }

    @operation("deleteTeam", "Delete a team", query=[TeamDeletionParameters], status=204, errors=[404, 409])
    def destroy(self, request: Request, team_id: int) -> Response:
        """Answers 409 `team_has_keys` for a team with keys, unless `move_keys_to` says where they go. What the team
        has spent stays in the request log."""
        given = self.valid_query(TeamDeletionParameters).validated_data
        TEAMS.remove(self.project_id, team_id, keys_to=given["move_keys_to"])
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("listTeamMembers", "Who belongs to a team", query=[PAGE], page=TeamMemberSerializer, errors=[404])
    @action(detail=True, url_path="members")
    def members(self, request: Request, team_id: int) -> Response:
        """The members by name. A lead sees the team's keys on the page of teams, and has no further right."""
        return self.page(list_members(TEAMS.get(self.project_id, team_id)), TeamMemberSerializer)

    @operation(
        "replaceTeamMembers",
        "Say who belongs to a team",
        body=TeamMembersSerializer,
        answer=WarnedTeamSerializer,
        errors=[404],
    )
    @members.mapping.put
    def replace_members(self, request: Request, team_id: int) -> Response:
        """These members of the project take the place of those whom the team has."""
        given = self.valid_body(TeamMembersSerializer).validated_data
        row = replace_members(self.project_id, team_id, given["members"])
        return Response(WarnedTeamSerializer(row).data)
