from __future__ import annotations

import pytest

from core.errors import ValidationError
from prompts.errors import (
    ConfigExistsError,
    InvalidVersionError,
    NothingToUndoError,
    RolloutActiveError,
    VersionNotFoundError,
)
from prompts.models import PromptActivation, PromptConfig, PromptVersion
from prompts.services import (
    activate_for_rollout,
    activate_version,
    create_config,
    delete_config,
    set_rollout_active,
    undo_activation,
    update_config,
)
from tests.factories.core import make_project
from tests.factories.prompts import make_config, make_version

pytestmark = pytest.mark.django_db


def active_number(config: PromptConfig) -> int | None:
    config.refresh_from_db()
    return None if config.active_version is None else config.active_version.number


def activate(config: PromptConfig, version: PromptVersion, reason: str = "") -> None:
    activate_version(
        project_id=config.project_id, config_id=config.pk, version_id=version.pk, actor="ada", reason=reason
    )


def undo(config: PromptConfig) -> PromptActivation:
    return undo_activation(project_id=config.project_id, config_id=config.pk, actor="ada", reason="worse")


def moves(config: PromptConfig) -> list[tuple[int | None, int, str]]:
    rows = PromptActivation.objects.filter(config=config).order_by("id")
    return [
        (None if row.from_version is None else row.from_version.number, row.to_version.number, row.kind) for row in rows
    ]


def test_create_config__name_taken__conflict_within_the_project_only() -> None:
    config = make_config(name="greeter")
    with pytest.raises(ConfigExistsError):
        create_config(project_id=config.project_id, name=" greeter ")
    assert create_config(project_id=make_project().pk, name="greeter").name == "greeter"
    assert create_config(project_id=config.project_id, name="Greeter").name == "Greeter"


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "a\x00b", "\u202ea", "a\u2028b"])
def test_create_config__impossible_name__refused(name: str) -> None:
    with pytest.raises(ValidationError) as raised:
        create_config(project_id=make_project().pk, name=name)
    assert list(raised.value.details or {}) == ["name"]


@pytest.mark.parametrize("name", ["x", "x" * 100, "Grüße, Ünïcode 你好", "a b/c:d"])
def test_create_config__printable_name__kept(name: str) -> None:
    assert make_config(name=name).name == name


def test_update_config__name_and_description__each_alone() -> None:
    config = make_config(name="old")
    update_config(project_id=config.project_id, config_id=config.pk, name="new")
    update_config(project_id=config.project_id, config_id=config.pk, description="what for")
    config.refresh_from_db()
    assert (config.name, config.description) == ("new", "what for")
    make_config(config.project, name="other")
    with pytest.raises(ConfigExistsError):
        update_config(project_id=config.project_id, config_id=config.pk, name="other")


def test_add_version__first__number_one_and_active() -> None:
    config = make_config()
    version = make_version(config, "Hello {{ name }}")
    assert (version.number, active_number(config)) == (1, 1)
    assert moves(config) == [(None, 1, "created")]


def test_add_version__second__next_number_and_not_active() -> None:
    config = make_config(versions=1)
    assert make_version(config).number == 2
    assert active_number(config) == 1
    assert moves(config) == [(None, 1, "created")]


def test_add_version__after_a_version_was_removed__number_is_not_given_again() -> None:
    config = make_config(versions=2)
    PromptVersion.objects.get(config=config, number=2).delete()
    assert make_version(config).number == 3


def test_add_version__bad_variables__nothing_made() -> None:
    config = make_config()
    with pytest.raises(InvalidVersionError):
        make_version(config, variables=[{"name": "1"}])
    assert make_version(config).number == 1


def test_add_version__members_of_objects__keep_their_order() -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {}, "längster": {}, "m": {"b": 1, "a": [None, True, 1.5]}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    version = make_version(make_config(), tools=tools, response_format={"type": "json_schema", "json_schema": schema})
    version = PromptVersion.objects.get(pk=version.pk)
    assert str(version.tools) == str(tools)
    assert str(version.response_format["json_schema"]) == str(schema)
    assert version.variables == []


def test_version__saved_again__refused() -> None:
    version = make_version(make_config())
    version.system_prompt = "Changed"
    with pytest.raises(TypeError, match="never changed"):
        version.save()
    with pytest.raises(TypeError, match="never changed"):
        PromptActivation.objects.get().save()


def test_activate__another_version__moves_and_keeps_who_and_why() -> None:
    config = make_config(versions=1)
    activate(config, make_version(config), reason="shorter")
    assert active_number(config) == 2
    row = PromptActivation.objects.filter(config=config).latest("id")
    assert (row.kind, row.actor, row.reason) == ("activated", "ada", "shorter")
    assert moves(config) == [(None, 1, "created"), (1, 2, "activated")]


def test_activate__active_version__changes_nothing() -> None:
    config = make_config(versions=1)
    assert config.active_version is not None
    activate(config, config.active_version)
    assert moves(config) == [(None, 1, "created")]


def test_activate__version_of_another_config__not_found() -> None:
    config = make_config(versions=1)
    with pytest.raises(VersionNotFoundError):
        activate(config, make_version(make_config(config.project)))


def test_undo__once__previous_state_and_a_row_that_says_so() -> None:
    config = make_config(versions=1)
    activate(config, make_version(config))
    row = undo(config)
    assert active_number(config) == 1
    assert (row.kind, row.actor, row.reason) == ("undone", "ada", "worse")
    assert moves(config)[-1] == (2, 1, "undone")


def test_undo__again_and_again__goes_back_move_by_move() -> None:
    config = make_config(versions=3)
    for number in (2, 3):
        activate(config, PromptVersion.objects.get(config=config, number=number))
    undo(config)
    assert active_number(config) == 2
    undo(config)
    assert active_number(config) == 1
    with pytest.raises(NothingToUndoError):
        undo(config)
    activate(config, PromptVersion.objects.get(config=config, number=3))
    undo(config)
    assert active_number(config) == 1


def test_undo__config_without_versions__refused() -> None:
    with pytest.raises(NothingToUndoError):
        undo(make_config())


def test_rollout_active__delete_activate_undo__refused_and_versions_may_be_added() -> None:
    config = make_config(versions=1)
    other = make_version(config)
    set_rollout_active(config_id=config.pk, active=True)
    with pytest.raises(RolloutActiveError):
        delete_config(project_id=config.project_id, config_id=config.pk)
    with pytest.raises(RolloutActiveError):
        activate(config, other)
    with pytest.raises(RolloutActiveError):
        undo(config)
    assert make_version(config).number == 3
    assert active_number(config) == 1
    set_rollout_active(config_id=config.pk, active=False)
    delete_config(project_id=config.project_id, config_id=config.pk)
    assert not PromptConfig.objects.exists()


def test_activate_for_rollout__active_flag_set__moves_and_can_be_undone_afterwards() -> None:
    config = make_config(versions=1)
    target = make_version(config)
    set_rollout_active(config_id=config.pk, active=True)
    activate_for_rollout(config_id=config.pk, version_id=target.pk, actor="rollout", reason="completed")
    set_rollout_active(config_id=config.pk, active=False)
    assert moves(config)[-1] == (1, 2, "rollout")
    undo(config)
    assert active_number(config) == 1


def test_delete_config__with_versions_and_history__all_gone() -> None:
    config = make_config(versions=2)
    activate(config, PromptVersion.objects.get(config=config, number=2))
    undo(config)
    delete_config(project_id=config.project_id, config_id=config.pk)
    assert not any(model.objects.exists() for model in (PromptConfig, PromptVersion, PromptActivation))


def test_delete_project__with_configs__all_gone() -> None:
    config = make_config(versions=2)
    activate(config, PromptVersion.objects.get(config=config, number=2))
    config.project.delete()
    assert not any(model.objects.exists() for model in (PromptConfig, PromptVersion, PromptActivation))
