"""Makes, changes and deletes teams, and says who belongs to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from core.errors import ConflictError, NotFoundError, ValidationError
from core.keys.services import LIMIT_FIELDS, change_key
from core.ledger import SumOfDollars
from core.models import ApiKey, Membership, Team, TeamMember

MAX_TEAMS = 1_000
NO_TEAM = "none"
"""The name of what a key without a team belongs to, where one has to be chosen."""

_NO_MEMBER = "This project has no member of this name: make the person a member of the project first."


def list_teams(project_id: UUID) -> QuerySet[Team]:
    """Returns the teams by name, with `key_count`, revoked keys left out, and `member_count`."""
    counted = Team.objects.for_project(project_id).annotate(
        key_count=Count("api_keys", filter=Q(api_keys__revoked_at=None), distinct=True),
        member_count=Count("members", distinct=True),
    )
    # A query that counts has no order of the table's own.
    return counted.order_by("name")


def get_team(project_id: UUID, team_id: int) -> Team:
    """Returns the team as `list_teams` does. Raises NotFoundError."""
    found = list_teams(project_id).filter(pk=team_id).first()
    if found is None:
        raise NotFoundError("This project has no such team.", code="team_not_found")
    return found


def create_team(project_id: UUID, values: Mapping[str, Any]) -> Team:
    """Returns a new team. Raises ConflictError for a name that another team has, and beyond MAX_TEAMS."""
    if Team.objects.for_project(project_id).count() >= MAX_TEAMS:
        raise ConflictError(f"A project has at most {MAX_TEAMS:,} teams.", code="too_many_teams")
    row = Team(project_id=project_id, **values)
    if any(values.get(name) is not None for name in LIMIT_FIELDS):
        row.limits_changed_at = timezone.now()
    _save(row)
    return get_team(project_id, row.pk)


def change_team(project_id: UUID, team_id: int, values: Mapping[str, Any]) -> Team:
    """Returns the team with these values; a column that is not among them stays as it is. Raises NotFoundError, and
    ConflictError for a name that another team has."""
    with transaction.atomic():
        row = _locked(project_id, team_id)
        if any(name in values and values[name] != getattr(row, name) for name in LIMIT_FIELDS):
            row.limits_changed_at = timezone.now()
        for name, value in values.items():
            setattr(row, name, value)
        _save(row)
    return get_team(project_id, team_id)


def delete_team(project_id: UUID, team_id: int, *, keys_to: str = "") -> None:
    """Deletes a team. `keys_to` is the id of the team that gets its keys, or NO_TEAM. Raises NotFoundError,
    ValidationError for a team that its keys cannot move to, and ConflictError for a team with keys that are to move
    nowhere."""
    with transaction.atomic():
        row = _locked(project_id, team_id)
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
        for key in keys:
            change_key(key, {"team_id": None if keys_to == NO_TEAM else int(keys_to)})
        row.delete()


def teams_budget(project_id: UUID) -> Decimal:
    """Returns the sum of the teams' budgets of a month, in US dollars."""
    found = Team.objects.for_project(project_id).aggregate(budget=SumOfDollars("monthly_budget_usd"))["budget"]
    return found or Decimal(0)


def list_members(team: Team) -> QuerySet[TeamMember]:
    return team.members.select_related("membership__user").order_by("membership__user__username")


def replace_members(project_id: UUID, team_id: int, members: Sequence[Mapping[str, Any]]) -> Team:
    """Gives a team these members, each with `username` and `is_lead`, in place of those that it has. Raises
    NotFoundError, and ValidationError for a name that no member of the project has, or that is there twice."""
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
    return get_team(project_id, team_id)


def leads(project_id: UUID, user_id: int) -> frozenset[int]:
    """Returns the ids of the teams that a person leads."""
    found = TeamMember.objects.filter(
        team__project_id=project_id, membership__project_id=project_id, membership__user_id=user_id, is_lead=True
    )
    return frozenset(found.values_list("team_id", flat=True))


def _memberships(project_id: UUID, members: Sequence[Mapping[str, Any]]) -> dict[int, bool]:
    """Returns whether each is a lead, by the id of the membership."""
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


def _locked(project_id: UUID, team_id: int) -> Team:
    row = Team.objects.for_project(project_id).select_for_update().filter(pk=team_id).first()
    if row is None:
        raise NotFoundError("This project has no such team.", code="team_not_found")
    return row


def _save(row: Team) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise ConflictError(f"The project has a team named {row.name!r} already.", code="team_exists") from None
