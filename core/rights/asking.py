from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.models import AnonymousUser

from core.models import Membership, Project
from core.rights.table import MODELS, OPERATIONS, PAGES, SCOPE_OPERATIONS, SCOPE_RIGHTS, TOOLS, Rows
from core.roles import PROJECT_RIGHTS, RIGHTS_OF, Right, Role

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser
    from django.db.models import QuerySet

    Person = AbstractBaseUser | AnonymousUser

_EVERYTHING = frozenset(PROJECT_RIGHTS)
_UNKNOWN_MODEL = Rows(Right.OPERATE, Right.OPERATE, Right.OPERATE, Right.OPERATE)
_CACHE_ATTRIBUTE = "_roles_of_this_request"


def right_of_operation(operation_id: str) -> Right:
    return OPERATIONS.get(operation_id, Right.ADMINISTER)


def right_of_tool(name: str) -> Right:
    return TOOLS.get(name, Right.ADMINISTER)


def right_of_page(url_name: str) -> Right:
    return PAGES.get(url_name, Right.OPERATE)


def rights_of_rows(model: str) -> Rows:
    return MODELS.get(model, _UNKNOWN_MODEL)


def rights_of_scopes(scopes: Iterable[str]) -> frozenset[Right]:
    return frozenset[Right]().union(*(SCOPE_RIGHTS.get(scope, frozenset()) for scope in scopes))


def scopes_of_operation(operation_id: str) -> list[str]:
    right = right_of_operation(operation_id)
    opening = [scope for scope, operations in SCOPE_OPERATIONS.items() if operation_id in operations]
    return sorted([*opening, *(scope for scope, rights in SCOPE_RIGHTS.items() if right in rights)])


def actor_of(person: Person) -> str:
    return f"user:{person.get_username()}"


def rights_in(person: Person, project_id: UUID) -> frozenset[Right]:
    """Returns no rights without a role there, and all for superusers."""
    if not _is_staff(person):
        return frozenset()
    if _is_superuser(person):
        return _EVERYTHING
    role = roles_of(person).get(project_id)
    return frozenset() if role is None else RIGHTS_OF[role]


def may(person: Person, right: Right, project_id: UUID | None = None) -> bool:
    if right is Right.OPEN:
        return True
    if right in (Right.NOBODY, Right.KEY) or not _is_staff(person):
        return False
    if right is Right.SIGNED_IN or _is_superuser(person):
        return True
    if project_id is not None:
        return right in rights_in(person, project_id)
    return any(right in RIGHTS_OF[role] for role in roles_of(person).values())


def projects_with(person: Person, right: Right) -> QuerySet[Project]:
    projects = Project.objects.order_by("name", "id")
    if may(person, right) and _is_superuser(person):
        return projects
    return projects.filter(pk__in=project_ids_with(person, right))


def project_ids_with(person: Person, right: Right) -> list[UUID]:
    if not _is_staff(person):
        return []
    return [project_id for project_id, role in roles_of(person).items() if right in RIGHTS_OF[role]]


def sees_every_project(person: Person) -> bool:
    return _is_staff(person) and _is_superuser(person)


def roles_of(person: Person) -> Mapping[UUID, Role]:
    if person.pk is None:
        return {}
    found: Mapping[UUID, Role] | None = getattr(person, _CACHE_ATTRIBUTE, None)
    if found is None:
        rows = Membership.objects.filter(user_id=person.pk).values_list("project_id", "role")
        # A role that this release does not know brings no rights.
        found = {project_id: Role(role) for project_id, role in rows if role in Role.values}
        setattr(person, _CACHE_ATTRIBUTE, found)
    return found


def _is_staff(person: Person) -> bool:
    return bool(person.is_active and getattr(person, "is_staff", False))


def _is_superuser(person: Person) -> bool:
    return bool(getattr(person, "is_superuser", False))
