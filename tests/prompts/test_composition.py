from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from core.models import Project
from prompts.content.composition import MAX_DEPTH, Library, compose
from prompts.content.messages import INSTRUCTION_ROLES, MAX_MESSAGES, ROLES
from prompts.content.templating import MAX_RENDERED_BYTES, RoleAndText
from prompts.errors import InvalidVersionError
from prompts.labels import set_label
from prompts.models import PromptConfig
from prompts.selectors import PromptVersionRecord, prompt_configs
from prompts.services import activate_version
from prompts.transfer import export_prompts
from tests.factories.core import client_of, make_project
from tests.factories.prompts import make_config, make_version
from tests.prompts.paths import BASE, config_path
from tests.tables.cases import tabled

USER = {"role": "user", "content": "Now: {{ question }}"}


def include(name: str) -> dict[str, Any]:
    return {"prompt": name}


@pytest.fixture
def style(project: Project) -> PromptConfig:
    config = make_config(project, "style")
    make_version(config, "Be {{ tone }}.", variables=[{"name": "tone", "type": "string", "required": True}])
    config.refresh_from_db()
    return config


def versions_path(config: PromptConfig) -> str:
    return config_path(config.pk, "versions")


def active(project: Project, name: str) -> PromptVersionRecord:
    record = prompt_configs(project.pk)[name].active
    assert record is not None
    return record


def test_include__of_another_prompt__its_texts_and_variables(project: Project, style: PromptConfig) -> None:
    make_version(make_config(project, "support"), "", messages=[USER, include("style")])

    record = active(project, "support")

    # Instructions stand before turns, wherever they were included.
    assert record.template.messages == [("system", "Be {{ tone }}."), ("user", USER["content"])]
    assert [(variable.name, variable.required) for variable in record.template.variables] == [("tone", True)]
    assert record.template.names == {"tone", "question"}
    assert record.included == {(style.pk, "style"): 1}


@pytest.mark.parametrize(
    ("reference", "text"),
    [("style", "Third."), ("style@2", "Second."), ("style@calm", "Second."), ("style@latest", "Third.")],
)
def test_include__prompt_moves_on__follows_the_name_and_the_label_and_keeps_the_number(
    project: Project, style: PromptConfig, reference: str, text: str
) -> None:
    make_version(style, "Second.")
    _label(style, 1)
    make_version(make_config(project, "support"), "", messages=[include(reference)])
    before = active(project, "support").template.messages

    third = make_version(style, "Third.")
    activate_version(project_id=project.pk, config_id=style.pk, version_id=third.pk, actor="ada")
    _label(style, 2)

    assert active(project, "support").template.messages == [("system", text)]
    assert (before == [("system", text)]) == (reference == "style@2")


def _label(config: PromptConfig, number: int) -> None:
    set_label(
        project_id=config.project_id,
        config_id=config.pk,
        name="calm",
        number=number,
        actor="ada",
        is_administrator=True,
    )


@pytest.mark.parametrize("reference", ["none", "style@none", "style@7", "style@99999999999", "none@1", "support"])
def test_post__include_of_what_is_not_there__400_naming_the_message(
    api: APIClient, project: Project, style: PromptConfig, reference: str
) -> None:
    config = make_config(project, "support")

    answer = api.post(versions_path(config), {"messages": [USER, include(reference)]})

    assert answer.status_code == 400, answer.content
    assert [*answer.json()["error"]["details"]] == ["messages.1.prompt"]
    assert not config.versions.exists()


@tabled
def test_post__include_of_another_form__400_naming_the_field(
    api: APIClient, style: PromptConfig, message: dict[str, Any], field: str
) -> None:
    answer = api.post(versions_path(style), {"messages": [message]})

    assert (answer.status_code, [*answer.json()["error"]["details"]]) == (400, [field])


def test_post__prompt_of_another_project__is_not_there(api: APIClient, style: PromptConfig) -> None:
    make_config(make_project(), "foreign", versions=1)

    answer = api.post(versions_path(style), {"messages": [include("foreign")]})

    assert (answer.status_code, [*answer.json()["error"]["details"]]) == (400, ["messages.0.prompt"])


def test_post__cycle_over_others__400_naming_the_message(api: APIClient, project: Project, style: PromptConfig) -> None:
    middle, outer = make_config(project, "middle"), make_config(project, "outer")
    make_version(middle, "", messages=[include("style")])
    make_version(outer, "", messages=[include("middle")])

    answer = api.post(versions_path(style), {"messages": [USER, include("outer")]})

    assert (answer.status_code, [*answer.json()["error"]["details"]]) == (400, ["messages.1.prompt"])
    assert "includes itself" in answer.json()["error"]["message"]


def test_activate__version_that_would_close_a_cycle__400(api: APIClient, project: Project, style: PromptConfig) -> None:
    other = make_config(project, "other", versions=1)
    waiting = make_version(style, "", messages=[include("other")])
    second = make_version(other, "", messages=[include("style")])
    activate_version(project_id=project.pk, config_id=other.pk, version_id=second.pk, actor="ada")

    answer = api.post(config_path(style.pk, "versions", waiting.pk, "activate"), {})

    assert answer.status_code == 400, answer.content
    assert active(project, "style").number == 1


def test_post__too_deep__400_and_as_deep_as_may_be_201(api: APIClient, project: Project) -> None:
    make_config(project, "p0", versions=1)
    for depth in range(1, MAX_DEPTH + 1):
        make_version(make_config(project, f"p{depth}"), "", messages=[include(f"p{depth - 1}")])

    answer = api.post(versions_path(make_config(project, "last")), {"messages": [include(f"p{MAX_DEPTH}")]})

    assert (answer.status_code, [*answer.json()["error"]["details"]]) == (400, ["messages.0.prompt"])
    assert active(project, f"p{MAX_DEPTH}").template.messages == [("system", "Be helpful.")]


@pytest.mark.parametrize("text", ["x" * (MAX_RENDERED_BYTES // 2 + 1), "x"])
def test_post__too_large_with_what_it_includes__400(api: APIClient, project: Project, text: str) -> None:
    repeated = 1 if len(text) > 1 else MAX_MESSAGES // 2 + 1
    messages = [{"role": "user", "content": text}] * repeated
    make_version(make_config(project, "large"), "", messages=messages)

    answer = api.post(versions_path(make_config(project, "outer")), {"messages": [include("large"), include("large")]})

    assert (answer.status_code, [*answer.json()["error"]["details"]]) == (400, ["messages.1.prompt"])


def test_delete_and_rename__included_prompt__409_until_nothing_active_includes_it(
    api: APIClient, project: Project, style: PromptConfig
) -> None:
    support = make_config(project, "support")
    make_version(support, "", messages=[include("style@1")])

    deleted, renamed = api.delete(config_path(style.pk)), api.put(config_path(style.pk), {"name": "other"})
    described = api.put(config_path(style.pk), {"name": "style", "description": "Calm."})

    assert (deleted.status_code, deleted.json()["error"]["code"]) == (409, "prompt_included")
    assert (renamed.status_code, described.status_code) == (409, 200)
    plain = make_version(support, "Be kind.")
    activate_version(project_id=project.pk, config_id=support.pk, version_id=plain.pk, actor="ada")
    assert api.delete(config_path(style.pk)).status_code == 204


def test_record__include_that_went__says_so(project: Project, style: PromptConfig) -> None:
    _label(style, 1)
    support = make_config(project, "support")
    make_version(support, "", messages=[USER, include("style@calm")])
    style.labels.all().delete()

    record = active(project, "support")

    assert record.problem.startswith("messages.1.prompt: ")
    assert record.is_composed


def test_check__includes__variables_of_all_and_faults_of_what_is_not_there(api: APIClient, style: PromptConfig) -> None:
    found, missing = (
        api.post(f"{BASE}/check", {"messages": [USER, include(name)]}, format="json").json()
        for name in ("style", "none")
    )

    assert found["valid"]
    assert [(use["name"], use["is_declared"]) for use in found["variables"]] == [("tone", True), ("question", False)]
    assert found["size_bytes"] == len("Be {{ tone }}.") + len(USER["content"])
    assert not missing["valid"]
    assert "messages.1.prompt" in [item["field"] for item in missing["findings"]]


def test_import__prompt_before_the_one_it_includes__both(project: Project, style: PromptConfig) -> None:
    make_version(make_config(project, "an outer one"), "", messages=[include("style@1")])
    document = {**export_prompts(project.pk), "dry_run": False}
    whole, part = make_project(), make_project()

    taken = client_of(whole).post(f"{BASE}/import", document, format="json")
    document["configs"] = document["configs"][:1]
    refused = client_of(part).post(f"{BASE}/import", document, format="json")

    assert (taken.status_code, refused.status_code) == (200, 400), refused.content
    assert active(whole, "an outer one").template.messages == [("system", "Be {{ tone }}.")]
    assert not prompt_configs(part.pk)


class Shelf(Library):
    def __init__(self, prompts: dict[str, Any]) -> None:
        self.prompts = prompts

    def find(self, reference: str) -> Any:
        return self.prompts.get(reference)


class Stored:
    def __init__(self, name: str, messages: list[dict[str, Any]]) -> None:
        self.config_id: Any = name
        self.config = self
        self.name = name
        self.number = 1
        self.system_prompt = ""
        self.messages = messages
        self.variables: list[dict[str, Any]] = [{"name": f"of_{name}"}]


NAMES = ["a", "b", "c", "d"]
MESSAGES = st.lists(
    st.builds(include, st.sampled_from(NAMES))
    | st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(ROLES), st.sampled_from("xyz")),
    min_size=1,
    max_size=4,
)


def expected(
    shelf: dict[str, Stored], messages: list[dict[str, Any]], around: tuple[str, ...]
) -> list[RoleAndText] | None:
    found: list[RoleAndText] = []
    for message in messages:
        name = message.get("prompt")
        if name is None:
            found.append((message["role"], message["content"]))
            continue
        inner = None if name in around else expected(shelf, shelf[name].messages, (*around, name))
        if inner is None:
            return None
        found += inner
    return found


@given(contents=st.fixed_dictionaries(dict.fromkeys(NAMES, MESSAGES)))
def test_compose__any_prompts__all_texts_in_order_or_refused(contents: dict[str, list[dict[str, Any]]]) -> None:
    shelf = {name: Stored(name, messages) for name, messages in contents.items()}
    texts = expected(shelf, contents["a"], ("a",))

    if texts is None or len(texts) > MAX_MESSAGES:
        with pytest.raises(InvalidVersionError) as caught:
            compose(Shelf(shelf), "a", contents["a"], [])  # type: ignore[arg-type]  # any value is an id here
        (field,) = caught.value.details or {}
        assert "prompt" in contents["a"][int(field.split(".")[1])]
        return
    made = compose(Shelf(shelf), "a", contents["a"], [{"name": "own"}])  # type: ignore[arg-type]  # as above
    instructions = [one for one in texts if one[0] in INSTRUCTION_ROLES]
    assert made.texts == instructions + [one for one in texts if one[0] not in INSTRUCTION_ROLES]
    assert [variable["name"] for variable in made.variables] == ["own", *(f"of_{name}" for _, name in made.included)]
