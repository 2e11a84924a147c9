from __future__ import annotations

import pytest
from django.utils import timezone

from core.keys.services import find_key, hash_key
from core.management.first_key import show_first_key
from core.models import ApiKey, FirstKey, Project
from core.services import BootstrappedProject

pytestmark = pytest.mark.django_db


class ShownKeys:
    def __init__(self, *, readable: bool = True) -> None:
        self.keys: list[BootstrappedProject] = []
        self._readable = readable

    def __call__(self, made: BootstrappedProject) -> bool:
        self.keys.append(made)
        return self._readable


def test_first_key__empty_installation__shown_once() -> None:
    shown = ShownKeys()

    show_first_key(shown)
    show_first_key(shown)

    [made] = shown.keys
    assert find_key(hash_key(made.api_key)) is not None
    assert Project.objects.get().pk == made.project_id


def test_first_key__process_died_before_it_was_shown__another_is_made_and_the_unseen_one_ends() -> None:
    def die(made: BootstrappedProject) -> bool:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        show_first_key(die)
    unseen = ApiKey.objects.get()
    shown = ShownKeys()

    show_first_key(shown)
    show_first_key(shown)

    [made] = shown.keys
    unseen.refresh_from_db()
    assert unseen.revoked_at is not None
    record = find_key(hash_key(made.api_key))
    assert record is not None
    assert record.scopes == {"gateway", "manage"}
    assert Project.objects.count() == 1


def test_first_key__shown_where_nobody_reads__is_shown_again() -> None:
    nowhere, terminal = ShownKeys(readable=False), ShownKeys()

    show_first_key(nowhere)
    show_first_key(terminal)

    assert len(terminal.keys) == 1
    assert terminal.keys[0].api_key != nowhere.keys[0].api_key
    assert find_key(hash_key(nowhere.keys[0].api_key)) is None


def test_first_key__not_noted_as_shown_but_used__stays() -> None:
    """The process ended between printing the key and noting that, and the user had seen the key."""
    show_first_key(ShownKeys(readable=False))
    ApiKey.objects.update(last_used_at=timezone.now())
    shown = ShownKeys()

    show_first_key(shown)

    assert shown.keys == []
    assert ApiKey.objects.get().revoked_at is None


def test_first_key__installation_with_projects_of_its_own__gets_none() -> None:
    Project.objects.create(name="theirs")
    shown = ShownKeys()

    show_first_key(shown)

    assert shown.keys == []
    assert not FirstKey.objects.exists()
