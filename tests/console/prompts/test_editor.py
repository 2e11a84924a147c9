from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from core.models import Project
from prompts.models import PromptConfig, PromptVersion
from tests.console.pages import text_of
from tests.console.prompts.conftest import shown
from tests.factories.core import client_of
from tests.factories.prompts import make_version
from tests.tables.cases import tabled

NEW = "/admin/prompts/new/"


def body(*variables: tuple[str, str, bool], **fields: Any) -> dict[str, Any]:
    rows: dict[str, Any] = {"variables-TOTAL_FORMS": len(variables) + 1, "variables-INITIAL_FORMS": 0}
    for index, (name, kind, required) in enumerate((*variables, ("", "string", False))):
        rows |= {f"variables-{index}-name": name, f"variables-{index}-type": kind}
        rows |= {f"variables-{index}-required": "on"} if required else {}
    return {"name": "support", "system_prompt": "Be kind.", "base": "0", "action": "save", **rows, **fields}


def edit(config: PromptConfig) -> str:
    return f"/admin/prompts/{config.pk}/edit/"


def new(project: Project) -> str:
    return f"{NEW}?project={project.pk}"


def test_new__sent__prompt_with_its_first_version_active(editor: Client, project: Project) -> None:
    sent = body(("user", "string", True), system_prompt="Hi {{ user }}.\r\nBye.", temperature="0.5", description="Mail")
    answer = editor.post(new(project), sent)

    version = PromptVersion.objects.get()
    assert answer.status_code == 302 and str(version.config_id) in answer.headers["Location"]
    assert (version.config.name, version.config.description) == ("support", "Mail")
    assert version.system_prompt == "Hi {{ user }}.\nBye."
    assert version.variables == [{"name": "user", "type": "string", "required": True}]
    assert (version.temperature, version.created_by) == (0.5, "user:ann")
    assert version.config.active_version == version


@tabled
def test_new__bad_field__error_and_nothing_is_lost(
    editor: Client, project: Project, fields: dict[str, str], problem: str
) -> None:
    sent = body(commit_message="My careful words", **fields)

    text = text_of(editor.post(new(project), sent))

    assert problem in text
    assert "My careful words" in text
    assert not PromptConfig.objects.exists()


def test_edit__opened__begins_with_the_active_or_the_named_version(editor: Client, config: PromptConfig) -> None:
    assert "Help {{ user }} kindly.</textarea>" in shown(editor, edit(config), config.project)
    assert "Help {{ user }} quickly.</textarea>" in shown(editor, edit(config), config.project, version="2")


def test_edit__saved__new_version_that_is_not_active(editor: Client, config: PromptConfig) -> None:
    editor.post(edit(config), body(base="2", commit_message="third", system_prompt="New."))

    version = PromptVersion.objects.get(number=3)
    assert (version.system_prompt, version.commit_message) == ("New.", "third")
    config.refresh_from_db()
    assert config.active_version is not None and config.active_version.number == 1


def test_edit__saved_and_activated__with_the_reason(editor: Client, config: PromptConfig) -> None:
    editor.post(edit(config), body(base="2", activate="on", reason="at once", name="help"))

    config.refresh_from_db()
    assert config.active_version is not None and config.active_version.number == 3
    assert (config.name, config.activations.latest("id").reason) == ("help", "at once")


def test_edit__save_and_try__leads_to_the_experiment_of_active_and_new(editor: Client, config: PromptConfig) -> None:
    answer = editor.post(edit(config), body(base="2", action="try"))

    made = PromptVersion.objects.get(number=3)
    assert "/admin/experiments/new/" in answer.headers["Location"]
    assert f"a={config.active_version_id}&b={made.pk}" in answer.headers["Location"]


def test_edit__somebody_saved_meanwhile__is_shown_and_nothing_is_lost(editor: Client, config: PromptConfig) -> None:
    make_version(config, "Help {{ user }} slowly.", commit_message="Theirs")

    text = text_of(editor.post(edit(config), body(base="2", system_prompt="Help {{ user }} warmly.")))

    assert "Somebody saved a version" in text
    assert "Theirs" in text and "<del>slowly</del>" in text and "<ins>warmly</ins>" in text
    assert "Help {{ user }} warmly.</textarea>" in text
    assert PromptVersion.objects.count() == 3
    assert '<input type="hidden" name="base" value="3">' in text
    assert editor.post(edit(config), body(base="3", system_prompt="Help.")).status_code == 302


@pytest.mark.parametrize("fragment", ["", "1"])
def test_check__typed_text__findings_of_the_api_and_differences(
    editor: Client, config: PromptConfig, fragment: str
) -> None:
    typed = "Help {{ user }} in {{ tone }}, {{ 1 }}."
    api = client_of(config.project).post("/api/llm/prompts/check", {"system_prompt": typed}, format="json").json()

    text = text_of(
        editor.post(edit(config), body(system_prompt=typed, base="2", action="check", fragment=fragment, tools="[x"))
    )

    assert f"About {api['token_count']} tokens" in text
    assert 'data-found="tone"' in text
    assert "line 1, column 32" in text
    assert "line 1, column 2" in text
    assert "Against the active version" in text
    assert ("<html" in text) is not bool(fragment)
    if not fragment:
        assert 'value="tone"' in text
    assert PromptVersion.objects.count() == 2


def test_editor__a_rollout_runs__saves_without_activating(editor: Client, config: PromptConfig) -> None:
    config.has_active_rollout = True
    config.save()

    assert "Activate it at once" not in shown(editor, edit(config), config.project)
    text = text_of(editor.post(edit(config), body(base="2", activate="on")))
    assert "A version cannot be activated" in text
    assert PromptVersion.objects.count() == 2


MESSAGES = [
    {"role": "system", "content": "Answer in {{ language }}."},
    {"role": "user", "content": "Good day"},
    {"role": "assistant", "content": "Guten Tag"},
]


def test_messages__written_as_rows__are_those_of_the_version(editor: Client, config: PromptConfig) -> None:
    make_version(config, "Be kind.", commit_message="style")
    roles = ["user", "assistant", "user"]
    sent = body(base="3", message_role=roles, message_text=["Good day\r\nto you", "Guten Tag", " "])

    editor.post(edit(config), sent)

    version = config.versions.order_by("-number")[0]
    assert version.system_prompt == ""
    assert version.messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Good day\nto you"},
        {"role": "assistant", "content": "Guten Tag"},
    ]


def test_messages__of_a_version__are_opened_and_saved_as_they_were(editor: Client, config: PromptConfig) -> None:
    version = make_version(config, "", messages=MESSAGES)

    page = shown(editor, edit(config), config.project, version=str(version.number))

    assert "Answer in {{ language }}.</textarea>" in page
    assert "\nGood day</textarea>" in page and "\nGuten Tag</textarea>" in page
    sent = body(base="3", system_prompt="Answer in {{ language }}.", message_role=["user", "assistant"])
    editor.post(edit(config), {**sent, "message_text": ["Good day", "Guten Tag"]})
    assert config.versions.order_by("-number")[0].messages == MESSAGES


@tabled
def test_messages__moved_without_a_script__stay_as_typed_and_nothing_is_saved(
    editor: Client, config: PromptConfig, action: str, texts: list[str]
) -> None:
    sent = body(base="2", action=action, message_role=["user", "assistant"], message_text=["one", "two"])

    page = text_of(editor.post(edit(config), sent))

    areas = page.split('<textarea name="message_text"')[1:]
    assert [area.partition(">")[2].partition("</textarea>")[0].strip() for area in areas] == texts
    assert config.versions.count() == 2


def test_messages__include_of_what_is_not_there__the_fault_names_the_message(
    editor: Client, config: PromptConfig
) -> None:
    sent = body(base="2", message_role=["prompt"], message_text=["none"])

    saved, checked = (text_of(editor.post(edit(config), {**sent, "action": action})) for action in ("save", "check"))

    assert "messages.1.prompt" in saved and "messages.1.prompt" in checked
    assert config.versions.count() == 2
