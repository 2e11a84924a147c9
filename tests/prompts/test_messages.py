from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from core.models import Project
from prompts.content.messages import INSTRUCTION_ROLES, MAX_MESSAGES, ROLES, check_messages
from prompts.content.templating import MAX_RENDERED_BYTES, RoleAndText, compile_messages
from prompts.content.version import VersionContent
from prompts.diff.contents import diff_contents
from prompts.errors import InvalidVersionError
from prompts.models import PromptConfig
from prompts.selectors import prompt_configs
from prompts.transfer import export_prompts
from tests.factories.core import client_of, make_project
from tests.factories.prompts import make_config, make_version
from tests.prompts.paths import BASE, config_path

FEW_SHOT = [
    {"role": "system", "content": "You answer in {{ language }}."},
    {"role": "user", "content": "Good day"},
    {"role": "assistant", "content": "Guten Tag\n"},
    {"role": "user", "content": "{{ question }}"},
]
TEXTS = st.text(alphabet=st.sampled_from('{} abé\n"'), max_size=8)
MESSAGES = st.lists(st.tuples(st.sampled_from(ROLES), TEXTS), max_size=6)


@pytest.fixture
def config(project: Project) -> PromptConfig:
    return make_config(project, "translator")


def versions_path(config: PromptConfig, *rest: object) -> str:
    return config_path(config.pk, "versions", *rest)


def test_post__messages__are_kept_as_they_were_sent(api: APIClient, config: PromptConfig) -> None:
    answer = api.post(versions_path(config), {"messages": FEW_SHOT})

    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["messages"], body["system_prompt"]) == (FEW_SHOT, "")
    assert api.get(versions_path(config, body["id"])).json()["messages"] == FEW_SHOT


def test_post__a_version_as_it_was_read__is_stored_again(api: APIClient, config: PromptConfig) -> None:
    first = api.post(versions_path(config), {"messages": FEW_SHOT}).json()

    again = api.post(versions_path(config), {"system_prompt": first["system_prompt"], "messages": first["messages"]})

    assert (again.status_code, again.json()["version_number"]) == (201, 2)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": FEW_SHOT, "system_prompt": "Be kind."}, "messages"),
        ({"messages": []}, "system_prompt"),
        ({"messages": ["text"]}, "messages.0"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "x", "name": "Ann"}]}, "messages.0.name"),
        ({"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}]}, "messages.1.role"),
        ({"messages": [{"role": "user", "content": "x"}] * (MAX_MESSAGES + 1)}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * (MAX_RENDERED_BYTES // 2 + 1)}] * 2}, "messages"),
    ],
)
def test_post__messages_of_another_form__400_naming_the_field(
    api: APIClient, config: PromptConfig, body: dict[str, Any], field: str
) -> None:
    answer = api.post(versions_path(config), body)

    assert answer.status_code == 400, answer.content
    assert [*answer.json()["error"]["details"]] == [field]
    assert not config.versions.exists()


def test_check_messages__single_surrogate__is_no_text() -> None:
    with pytest.raises(InvalidVersionError) as caught:
        check_messages([{"role": "user", "content": "\ud800"}])

    assert [*(caught.value.details or {})] == ["messages.0.content"]


def test_check__messages__places_and_variables_of_all_of_them(api: APIClient) -> None:
    messages = [*FEW_SHOT[:3], {"role": "user", "content": "Now:\n{{ oh no }} {{ question }}"}]

    found = api.post(f"{BASE}/check", {"messages": messages}, format="json").json()

    assert found["valid"]
    assert [(use["name"], use["count"], use["first_line"]) for use in found["variables"]] == [
        ("language", 1, 1),
        ("question", 1, 2),
    ]
    assert ("messages.3.content", 2, 1) in [(item["field"], item["line"], item["column"]) for item in found["findings"]]
    assert found["size_bytes"] == sum(len(message["content"].encode()) for message in messages)


def test_search__word_of_a_message__finds_the_version(api: APIClient, config: PromptConfig) -> None:
    make_version(config)
    make_version(config, "", messages=FEW_SHOT)

    for text in ("guten tag", "Tag\n"):
        found = api.get(versions_path(config), {"search": text}).json()["results"]
        assert [row["version_number"] for row in found] == [2], text


def test_diff__messages__each_with_its_lines(api: APIClient, config: PromptConfig) -> None:
    before = make_version(config, "", messages=FEW_SHOT)
    changed = [FEW_SHOT[0], {"role": "user", "content": "Good morning"}, *FEW_SHOT[2:], FEW_SHOT[1]]
    after = make_version(config, "", messages=changed)

    found = api.get(versions_path(config, before.pk, "diff", after.pk)).json()

    assert found["system_prompt"] == []
    assert [(item["kind"], item["from_index"], item["to_index"]) for item in found["messages"]] == [
        ("equal", 0, 0),
        ("changed", 1, 1),
        ("equal", 2, 2),
        ("equal", 3, 3),
        ("added", None, 4),
    ]
    (line,) = found["messages"][1]["lines"]
    assert [part["text"] for part in line["to_parts"] if part["changed"]] == ["morning"]


def test_diff__system_prompt_and_messages__the_prompt_is_a_message(api: APIClient, config: PromptConfig) -> None:
    before = make_version(config, "You answer in {{ language }}.")
    after = make_version(config, "", messages=FEW_SHOT[:2])

    found = api.get(versions_path(config, before.pk, "diff", after.pk)).json()

    assert [row["kind"] for row in found["system_prompt"]] == ["removed"]
    assert [(item["kind"], item["to_role"]) for item in found["messages"]] == [("equal", "system"), ("added", "user")]


@given(before=MESSAGES.filter(bool), after=MESSAGES.filter(bool))
def test_diff__any_messages__each_side_reads_as_its_version(
    before: list[RoleAndText], after: list[RoleAndText]
) -> None:
    left, right = ([{"role": role, "content": text} for role, text in side] for side in (before, after))
    found = diff_contents(VersionContent(messages=left), VersionContent(messages=right)).messages

    for side, texts in (("from", before), ("to", after)):
        items = [item for item in found if getattr(item, f"{side}_index") is not None]
        lines = [[getattr(row, f"{side}_text") for row in item.lines] for item in items]
        assert [getattr(item, f"{side}_index") for item in items] == [*range(len(texts))]
        assert [
            (getattr(item, f"{side}_role"), "\n".join(line for line in rows if line is not None))
            for item, rows in zip(items, lines, strict=True)
        ] == texts


def test_import__exported_messages__the_same_version_once(project: Project, config: PromptConfig) -> None:
    make_version(config, "", messages=FEW_SHOT)
    document = {**export_prompts(project.pk), "dry_run": False}
    other = make_project()

    first, second = (client_of(other).post(f"{BASE}/import", document, format="json").json() for _ in "12")

    assert (first["versions_added"], second["versions_added"], second["versions_skipped"]) == (1, 0, 1)
    active = prompt_configs(other.pk)["translator"].active
    assert active is not None
    assert active.template.messages == [(message["role"], message["content"]) for message in FEW_SHOT]


@given(messages=MESSAGES, values=st.dictionaries(st.sampled_from(["a", "b"]), TEXTS))
def test_render__any_messages__each_as_it_renders_alone(messages: list[RoleAndText], values: dict[str, str]) -> None:
    whole = compile_messages(messages, [{"name": "a"}, {"name": "b"}])
    alone = [(role, compile_messages([(role, text)], [{"name": "a"}, {"name": "b"}])) for role, text in messages]

    expected = [(role, template.render(values)) for role, template in alone]

    assert whole.render_messages(values) == [(role, text) for role, text in expected if text]
    assert whole.messages == [(role, text) for role, text in messages if text]
    assert whole.render(values) == "".join(text for _, text in expected)
    assert {role for role, _ in whole.messages} <= {*INSTRUCTION_ROLES, "user", "assistant"}
