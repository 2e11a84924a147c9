from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.utils import timezone

from core.keys.services import issue_key, revoke_key
from core.models import ApiKey, FirstKey, Project
from core.rights.scopes import FIRST_KEY_SCOPES
from core.services import BootstrappedProject, bootstrap_project

_PROJECT_NAME = "default"


def show_first_key(show: Callable[[BootstrappedProject], bool]) -> None:
    """Makes the first project if there is none, and passes its key to `show`, which returns whether it could be read.

    A key that was not shown, because the process died first, is revoked and replaced. Holds an installation lock until
    the key has been shown.
    """
    if not Project.objects.exists():
        made = _make()
    else:
        first = FirstKey.objects.select_related("api_key__project").filter(shown_at=None).first()
        if first is None:
            return
        if first.api_key.last_used_at is not None or first.api_key.revoked_at is not None:
            _note_shown()  # A person has seen the key, or has revoked it.
            return
        made = _make_again(first)
    if show(made):
        _note_shown()


def _make() -> BootstrappedProject:
    with transaction.atomic():
        made = bootstrap_project(name=_PROJECT_NAME)
        FirstKey.objects.create(api_key=ApiKey.objects.get(project_id=made.project_id))
    return made


def _make_again(first: FirstKey) -> BootstrappedProject:
    unseen = first.api_key
    with transaction.atomic():
        row, key = issue_key(unseen.project, name=unseen.name, scopes=FIRST_KEY_SCOPES)
        revoke_key(unseen)
        FirstKey.objects.filter(pk=first.pk).update(api_key=row)
    return BootstrappedProject(unseen.project_id, key)


def _note_shown() -> None:
    FirstKey.objects.filter(shown_at=None).update(shown_at=timezone.now())
