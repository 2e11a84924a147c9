from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from core.errors import ConflictError, ValidationError
from core.keys.services import issue_key
from core.models import NAME_CHARACTERS, Project
from core.rights.scopes import FIRST_KEY_SCOPES
from core.signals import project_created


@dataclass(frozen=True, slots=True)
class BootstrappedProject:
    project_id: UUID
    api_key: str


def register_project(project: Project, *, is_described: bool = False) -> None:
    """Saves a new project and signals the other apps, in one transaction.

    With `is_described`, it gets nothing that a first project takes from the environment.
    """
    with transaction.atomic():
        first = not is_described and not Project.objects.exists()
        project.save(force_insert=True)
        project_created.send(sender=Project, project=project, first=first)


def bootstrap_project(*, name: str) -> BootstrappedProject:
    name = name.strip()
    if not name or len(name) > NAME_CHARACTERS or "\x00" in name:
        raise ValidationError(f"The name of a project has 1 to {NAME_CHARACTERS} characters.")
    with transaction.atomic():
        if Project.objects.filter(name=name).exists():
            raise ConflictError(f"A project named {name!r} exists already.")
        project = Project(name=name)
        register_project(project)
        _, key = issue_key(project, name="bootstrap", scopes=FIRST_KEY_SCOPES)
    return BootstrappedProject(project.pk, key)
