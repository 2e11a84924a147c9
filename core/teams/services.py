from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from core.errors import ConflictError, ValidationError
from core.keys.services import LIMIT_FIELDS, change_key
from core.ledger import SumOfDollars
from core.models import ApiKey, Membership, Team, TeamMember
from core.resources.declaration import Resource
from core.resources.rows import get_or_raise

NO_TEAM = "none"
"""The name of what a key without a team belongs to, where one has to be chosen."""

_NO_MEMBER = "This project has no member of this name: make the person a member of the project first."


class Teams(Resource[Team]):
    model = Team
    maximum = 1_000
    missing = ("team_not_found", "This project has no such team.")
    taken = ("team_exists", "The project has a team named {key!r} already.")
    full = ("too_many_teams", "A project has at most {maximum:,} teams.")

    def rows(self, project_id: UUID) -> QuerySet[Team]:
        counted = (
            super()
            .rows(project_id)
            .annotate(
                key_count=Count("api_keys", filter=Q(api_keys__revoked_at=None), distinct=True),
                member_count=Count("members", distinct=True),
            )
        )
        # A query that counts has no order of the table's own.
        return counted.order_by("name")

    def fill(self, row: Team, values: Mapping[str, Any]) -> None:
        if any(name in values and values[name] != getattr(row, name) for name in LIMIT_FIELDS):
            row.limits_changed_at = timezone.now()
        super().fill(row, values)

    def remove(self, project_id: UUID, key: Any, *, actor: str = "", keys_to: str = "") -> None:
        """`keys_to` is the id of the team that gets the keys, or NO_TEAM.

        Raises NotFoundError, ValidationError for a team that cannot get the keys, and ConflictError for a team with
        keys and no `keys_to`.
        """
        with transaction.atomic():
            row = _locked(project_id, key)
            keys = list(ApiKey.objects.for_project(project_id).filter(team=row, revoked_at=None).select_for_update())
            if keys and not keys_to:
                raise ConflictError(
                    f"{row.name} has {len(keys):,} keys: say where they go, to another team or to none.",
                    code="team_has_keys",
                )
            if keys_to == str(row.pk):
                raise ValidationError.of_field("move_keys_to", "The keys cannot stay in the team that is deleted.")
            if keys_to not in ("", NO_TEAM) and not keys_to.isdecimal():
                raise ValidationError.of_field("move_keys_to", f"The id of a team, or {NO_TEAM}.")
            for one in keys:
                change_key(one, {"team_id": None if keys_to == NO_TEAM else int(keys_to)})
            row.delete()


TEAMS = Teams()


def teams_budget(project_id: UUID) -> Decimal:
    """Returns the sum of the teams' monthly budgets in US dollars."""
    found = Team.objects.for_project(project_id).aggregate(budget=SumOfDollars("monthly_budget_usd"))["budget"]
    return found or Decimal(0)


def list_members(team: Team) -> QuerySet[TeamMember]:
    return team.members.select_related("membership__user").order_by("membership__user__username")


def replace_members(project_id: UUID, team_id: int, members: Sequence[Mapping[str, Any]]) -> Team:
    """Replaces a team's members; each has `username` and `is_lead`.

    Raises NotFoundError, and ValidationError for a repeated name or one that no member of the project has.
    """
    with transaction.atomic():
        row = _locked(project_id, team_id)
        wanted = _memberships(project_id, members)
        for there in row.members.all():
            if there.membership_id not in wanted:
                there.delete()
            elif wanted[there.membership_id] != there.is_lead:
                there.is_lead = wanted[there.membership_id]
                there.save(update_fields=["is_lead"])
        known = set(row.members.values_list("membership_id", flat=True))
        for membership_id, is_lead in wanted.items():
            if membership_id not in known:
                TeamMember.objects.create(team=row, membership_id=membership_id, is_lead=is_lead)
    return TEAMS.get(project_id, team_id)


def leads(project_id: UUID, user_id: int) -> frozenset[int]:
    """Returns the ids of the teams that the person leads."""
    found = TeamMember.objects.filter(
        team__project_id=project_id, membership__project_id=project_id, membership__user_id=user_id, is_lead=True
    )
    return frozenset(found.values_list("team_id", flat=True))


def _memberships(project_id: UUID, members: Sequence[Mapping[str, Any]]) -> dict[int, bool]:
    rows = Membership.objects.for_project(project_id).filter(user__username__in=[one["username"] for one in members])
    ids = dict(rows.values_list("user__username", "pk"))
    wanted: dict[int, bool] = {}
    for place, one in enumerate(members):
        pk = ids.get(one["username"])
        if pk is None:
            raise ValidationError.of_field(f"members.{place}.username", _NO_MEMBER)
        if pk in wanted:
            raise ValidationError.of_field(f"members.{place}.username", "Is there twice.")
        wanted[pk] = one["is_lead"]
    return wanted


def _locked(project_id: UUID, team_id: Any) -> Team:
    teams = Team.objects.for_project(project_id).select_for_update()
    return get_or_raise(teams, TEAMS.not_found(team_id), pk=team_id)
