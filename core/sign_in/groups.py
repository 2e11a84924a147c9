"""Rights from groups: the groups that a provider names for a person, and the roles they give.

They are computed anew at every sign-in. Rights that an administrator or superuser gave by hand stay.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from core.models import Membership, Project, SignInIdentity
from core.roles import Role, highest_role
from core.sign_in.providers import EVERY_PROJECT, GroupRights, Provider

logger = logging.getLogger("core.sign_in")

# A sentence names so many groups at most, each as far as these characters.
_NAMED_GROUPS, _NAMED_CHARACTERS = 10, 60


@dataclass(slots=True)
class Granted:
    is_superuser: bool = False
    roles: dict[UUID, Role] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def granted_by(provider: Provider, claims: Mapping[str, Any]) -> Granted:
    granted = Granted()
    if not provider.groups:
        return granted
    groups = _groups_of(provider, claims, granted)
    known = [provider.groups[group] for group in groups if group in provider.groups]
    granted.is_superuser = any(rights.is_superuser for rights in known)
    missing = _add_roles(granted, known)
    for project in missing:
        logger.warning("groups.project_missing provider=%s project=%r", provider.name, project)
        granted.problems.append(f"Your groups give a role in the project “{project}”, which there is not.")
    unknown = [group for group in groups if group not in provider.groups]
    if unknown:
        logger.info("groups.without_role provider=%s groups=%r", provider.name, unknown[:_NAMED_GROUPS])
    if not known and not granted.problems:
        granted.problems.append(_without_role(provider, unknown))
    return granted


def apply(granted: Granted, identity: SignInIdentity) -> bool:
    """Gives what the groups bring and takes away what earlier groups brought, within a transaction. Returns whether
    anything changed."""
    person = identity.user
    changed = _apply_superuser(granted, identity, person)
    rows = {row.project_id: row for row in Membership.objects.filter(user=person).select_for_update()}
    for project_id, row in rows.items():
        if row.group_role and project_id not in granted.roles:
            _take(row)
            changed = True
    for project_id, role in granted.roles.items():
        row = rows.get(project_id) or _without_membership(person, project_id, identity.provider)
        changed |= _give(row, role)
    return changed


def _apply_superuser(granted: Granted, identity: SignInIdentity, person: User) -> bool:
    earlier = SignInIdentity.objects.filter(user=person, made_superuser=True)
    if granted.is_superuser and not person.is_superuser:
        person.is_superuser = True
        person.save(update_fields=["is_superuser"])
        identity.made_superuser = True
        identity.save(update_fields=["made_superuser"])
    elif not granted.is_superuser and earlier.exists():
        person.is_superuser = False
        person.save(update_fields=["is_superuser"])
        earlier.update(made_superuser=False)
    else:
        return False
    return True


def _without_membership(person: User, project_id: UUID, provider: str) -> Membership:
    return Membership(user=person, project_id=project_id, role="", created_by=f"provider:{provider}")


def _give(row: Membership, role: Role) -> bool:
    given = row.given_role if row.group_role else row.role
    if (row.group_role, row.given_role) == (role, given):
        return False
    row.group_role, row.given_role = role, given
    row.role = highest_role(role, given)
    row.save()
    return True


def _take(row: Membership) -> None:
    if not row.given_role:
        row.delete()
        return
    row.role, row.group_role, row.given_role = row.given_role, "", ""
    row.save()


def _groups_of(provider: Provider, claims: Mapping[str, Any], granted: Granted) -> list[str]:
    found = claims.get(provider.groups_claim)
    if found is None:
        found = _nested(claims, provider.groups_claim.split("."))
    if isinstance(found, str):
        found = [found]
    if found is None:
        # https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference#groups-overage-claim
        if provider.groups_claim in (claims.get("_claim_names") or {}):
            return _no_groups(provider, granted, "are too many to be sent with a sign-in", "too_many")
        return []
    if not isinstance(found, list) or not all(isinstance(group, str) for group in found):
        return _no_groups(provider, granted, "came in a form that cannot be read", "malformed")
    return list(dict.fromkeys(found))


def _no_groups(provider: Provider, granted: Granted, why: str, reason: str) -> list[str]:
    logger.warning("groups.unreadable provider=%s reason=%s", provider.name, reason)
    granted.problems.append(f"Your groups at {provider.label} {why}, so they give you no role here.")
    return []


def _nested(claims: Any, path: list[str]) -> Any:
    for name in path:
        claims = claims.get(name) if isinstance(claims, Mapping) else None
    return claims


def _add_roles(granted: Granted, known: Collection[GroupRights]) -> list[str]:
    named = {project for rights in known for project in rights.roles}
    projects = _projects(named)
    for rights in known:
        for project, role in rights.roles.items():
            for project_id in projects.get(project, ()):
                granted.roles[project_id] = highest_role(role, granted.roles.get(project_id, ""))
    return sorted(named - projects.keys())


def _projects(named: Set[str]) -> dict[str, list[UUID]]:
    if not named:
        return {}
    every = list(Project.objects.values_list("pk", "name"))
    found: dict[str, list[UUID]] = {EVERY_PROJECT: [pk for pk, _ in every]} if EVERY_PROJECT in named else {}
    for pk, name in every:
        for written in named & {name, str(pk)}:
            found.setdefault(written, []).append(pk)
    return found


def _without_role(provider: Provider, groups: list[str]) -> str:
    if not groups:
        return f"{provider.label} names no groups for you, so they give you no role here."
    shown = ", ".join(f"“{group[:_NAMED_CHARACTERS]}”" for group in groups[:_NAMED_GROUPS])
    more = f" and {len(groups) - _NAMED_GROUPS} more" if len(groups) > _NAMED_GROUPS else ""
    return f"None of your groups at {provider.label} gives a role here: {shown}{more}."
