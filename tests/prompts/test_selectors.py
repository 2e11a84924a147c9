from __future__ import annotations

import gc
import json
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from prompts.models import PromptVersion
from prompts.selectors import prompt_configs, version_records
from prompts.services import activate_version
from tests.factories.core import make_project
from tests.factories.prompts import make_config, make_version

pytestmark = pytest.mark.django_db

TOOLS = [{"type": "function", "function": {"name": "f", "description": "grüße", "parameters": {"z": 1, "a": 2}}}]


def test_prompt_configs__active_version__ready_for_the_hot_path() -> None:
    config = make_config(name="greeter")
    version = make_version(
        config,
        "Hello {{ name }}",
        model="gpt-4o",
        temperature=0.5,
        max_tokens=10,
        variables=[{"name": "name", "type": "string", "required": True}],
        tools=TOOLS,
        response_format={"type": "json_object"},
    )
    record = prompt_configs(config.project_id)["greeter"]
    assert (record.id, record.name) == (config.pk, "greeter")
    active = record.active
    assert active is not None
    assert (active.id, active.number, active.model) == (version.pk, 1, "gpt-4o")
    assert (active.temperature, active.max_tokens) == (0.5, 10)
    assert active.template.render({"name": "Ada"}) == "Hello Ada"
    assert active.tools == json.dumps(TOOLS, ensure_ascii=False, separators=(",", ":")).encode()
    assert active.response_format == b'{"type":"json_object"}'


def test_prompt_configs__version_says_nothing__none() -> None:
    config = make_config(versions=1)
    active = prompt_configs(config.project_id)[config.name].active
    assert active is not None
    assert (active.model, active.temperature, active.max_tokens, active.tools, active.response_format) == (
        "",
        None,
        None,
        None,
        None,
    )


def test_prompt_configs__no_version_yet_and_other_projects__none_and_left_out() -> None:
    config = make_config()
    make_config(versions=1)
    (record,) = prompt_configs(config.project_id).values()
    assert record.active is None
    assert prompt_configs(make_project().pk) == {}


def test_prompt_configs__known_versions__are_not_read_again(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    project = make_project()
    for _ in range(5):
        make_config(project, versions=2)
    with django_assert_num_queries(2):
        first = prompt_configs(project.pk)
    with django_assert_num_queries(1):
        assert prompt_configs(project.pk) == first
    del first
    gc.collect()
    with django_assert_num_queries(2):
        prompt_configs(project.pk)


def test_prompt_configs__activated__the_new_version() -> None:
    config = make_config(versions=2)
    held = prompt_configs(config.project_id)
    target = PromptVersion.objects.get(config=config, number=2)
    activate_version(project_id=config.project_id, config_id=config.pk, version_id=target.pk, actor="")
    active = prompt_configs(config.project_id)[config.name].active
    assert active is not None and active.number == 2
    before = held[config.name].active
    assert before is not None and before.number == 1


def test_version_records__some_unknown__those_that_exist() -> None:
    version = make_version(make_config())
    assert version_records([version.pk, uuid4()]).keys() == {version.pk}
    assert version_records([]) == {}
    assert version_records([version.pk])[version.pk].number == 1
    assert version_records([uuid4()]) == {}
