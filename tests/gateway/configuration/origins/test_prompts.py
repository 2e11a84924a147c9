"""`manage.py import_from` Langfuse and Helicone: prompts with their versions and labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from core.models import Project
from gateway.configuration.origins import helicone, langfuse
from gateway.configuration.origins.remaining import Imported
from prompts.models import PromptConfig
from tests.gateway.configuration.commands import output
from tests.gateway.configuration.origins.accounted import told
from tests.tables.cases import tabled

FILES = Path(__file__).parent / "files"


def langfuse_of(**fields: Any) -> Imported:
    return langfuse.read([{"name": "p", "version": 1, "prompt": "a", **fields}])


def helicone_of(body: dict[str, Any], **fields: Any) -> Imported:
    body = {"messages": [{"role": "system", "content": "a"}], **body}
    version = {"major_version": 1, "minor_version": 0, "prompt_body": body, **fields}
    return helicone.read([{"name": "p", "versions": [version]}])


@pytest.mark.django_db
@pytest.mark.parametrize("origin", ["langfuse", "helicone"])
def test_import_from__prompts__again_changes_nothing(origin: str) -> None:
    command = ("import_from", origin, str(FILES / f"{origin}.json"), "--project", "moved", "--lossy")
    assert output(*command, "--yes").endswith("Done.\n")
    assert "No changes: all is as the file says." in output(*command, "--check")


@pytest.mark.django_db
def test_import_from__prompt_that_loses_a_message__is_refused_unless_lossy(tmp_path: Path) -> None:
    file = tmp_path / "prompts.json"
    system = {"role": "system", "content": "Be kind."}
    place = {"type": "placeholder", "name": "history"}
    version = {"name": "p", "version": 1, "type": "chat", "labels": []}
    command = ("import_from", "langfuse", str(file), "--project", "moved")

    file.write_text(json.dumps([{**version, "prompt": [system, place, {"role": "user", "content": "And now?"}]}]))
    with pytest.raises(CommandError, match=r"0.prompt.1: is no message of text.*\n.*--lossy"):
        output(*command, "--yes")
    assert not PromptConfig.objects.exists()
    assert "+ prompts.p" in output(*command, "--plan")
    assert output(*command, "--yes", "--lossy").endswith("Done.\n")

    # The client's messages follow the prompt's anyway.
    file.write_text(json.dumps([{**version, "name": "q", "prompt": [system, place]}]))
    assert "0.prompt.1: is left out: the client's messages follow" in output(*command, "--yes")


@pytest.mark.django_db
def test_import_from__langfuse__versions_labels_and_what_is_included() -> None:
    printed = output("import_from", "langfuse", str(FILES / "langfuse.json"), "--project", "moved", "--yes", "--lossy")

    critic = PromptConfig.objects.get(name="critic")
    first, second = critic.versions.order_by("number")
    assert (first.system_prompt, first.response_format) == ("You judge films.", {"type": "json_object"})
    assert second.messages == [
        {"prompt": "tone@production"},
        {"role": "system", "content": "Judge {{film}} for {{ reader-kind }}."},
        {"role": "user", "content": "Is it good?"},
    ]
    assert (second.model, second.temperature, second.max_tokens) == ("gpt-4o-mini", 0.5, 200)
    assert second.commit_message == "as a chat"
    assert critic.active_version == first
    assert {label.name: label.version.number for label in critic.labels.all()} == {"production": 1, "staging": 2}
    for place, words in {
        "0.prompt.2": "is no message of text",
        "0.prompt.4": "an instruction behind other messages",
        "0.prompt.1": "{{ reader-kind }} is no placeholder here",
        "0.labels": "the label Staging is called staging here",
        "0.tags.0": "prompts have no tags",
        "0.config.languages.0": "settings of an application",
    }.items():
        assert f"{place}: {words}" in printed


@pytest.mark.django_db
def test_import_from__helicone__versions_variables_and_environments() -> None:
    printed = output("import_from", "helicone", str(FILES / "helicone.json"), "--project", "moved", "--yes", "--lossy")

    support = PromptConfig.objects.get(name="support")
    first, second = support.versions.order_by("number")
    assert first.commit_message == "1.0"
    assert second.messages == [
        {"role": "system", "content": "You help with {{ topic }}, {{ user_age }} years."},
        {"role": "user", "content": "{{ question }}"},
    ]
    assert [(one["name"], one["type"]) for one in second.variables] == [
        ("topic", "string"),
        ("user_age", "number"),
        ("question", "string"),
    ]
    assert second.tools[0]["function"]["name"] == "look_up"
    assert (second.commit_message, support.active_version) == ("1.1: shorter", second)
    labels = {label.name: label.version.number for label in support.labels.all()}
    assert labels == {"production": 2, "blue-team": 2, "staging": 1}
    for words in (
        "the variable user-age is called user_age here",
        "is no message of text",
        "{{hcp:abc:0:system}} is no placeholder here",
        "support 2.0 has no prompt_body",
        "empty has no version with a text",
        "0.versions.0.prompt_body.top_p: a request sends it itself",
        "0.tags.0: prompts have no tags",
    ):
        assert words in printed


# What prompts of each have beside their text, each by itself.


def test_langfuse__text__is_the_system_prompt() -> None:
    assert langfuse_of().project["prompts"]["p"]["versions"] == [{"number": 1, "system_prompt": "a"}]


def test_langfuse__messages__stay_messages() -> None:
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "{{ b }}"}]
    (version,) = langfuse_of(prompt=messages, type="chat").project["prompts"]["p"]["versions"]
    assert version["messages"] == messages


@tabled
def test_prompts__parameters__are_the_versions(name: str, value: Any) -> None:
    for found in (langfuse_of(config={name: value}), helicone_of({name: value})):
        assert found.project["prompts"]["p"]["versions"][0][name] == value
        assert found.notes == []


def test_prompts__parameter_out_of_range__is_told() -> None:
    assert told(langfuse_of(config={"temperature": 3})) == {"0.config.temperature": "is above 2.0 and left out"}


def test_langfuse__labels__follow_their_versions() -> None:
    prompt = langfuse_of(labels=["production", "latest", "tenant-1"]).project["prompts"]["p"]
    assert (prompt["labels"], prompt["active_version"]) == ({"production": 1, "tenant-1": 1}, 1)


def test_langfuse__without_production__the_last_version_is_active() -> None:
    found = langfuse.read([{"name": "p", "version": number, "prompt": f"{number}"} for number in (2, 1, 5)])
    assert found.project["prompts"]["p"]["active_version"] == 5


def test_langfuse__commit_message_and_bookkeeping__leave_no_note() -> None:
    found = langfuse_of(commitMessage="why", id="x", createdAt="t", createdBy="ann", tags=[])
    assert found.project["prompts"]["p"]["versions"][0]["commit_message"] == "why"
    assert found.notes == []


def test_langfuse__answer_to_one_version__is_read_as_it_came() -> None:
    """All fields of GET /api/public/v2/prompts/NAME, with those null that have no value."""
    times = {"createdAt": "2026-01-02T03:04:05.678Z", "updatedAt": "2026-01-02T03:04:05.678Z"}
    nothing = dict.fromkeys(("isActive", "commitMessage", "resolutionGraph"))
    answer = {"id": "c1", **times, "projectId": "p1", "createdBy": "API", **nothing}
    content = {
        "name": "tone",
        "version": 4,
        "type": "text",
        "prompt": "Be kind.",
        "config": {},
        "tags": [],
        "labels": [],
    }
    found = langfuse.read({**answer, **content})
    versions = [{"number": 4, "system_prompt": "Be kind."}]
    assert found.project["prompts"] == {"tone": {"versions": versions, "labels": {}, "active_version": 4}}
    assert found.notes == []


def test_helicone__answers_of_the_api__are_read_as_they_came() -> None:
    """The answers to the three questions: the prompts, their versions, and each version with its body."""
    body = {"model": "gpt-4o", "messages": [{"role": "system", "content": "Be kind."}]}
    own = {"id": "v1", "prompt_id": "p1", "model": "gpt-4o", "major_version": 1, "minor_version": 0}
    more = {"commit_message": "first", "environments": ["production"], "created_at": "2026-01-02", "s3_url": "s3://x"}
    version = {"data": {**own, **more, "prompt_body": body}, "error": None}
    prompt = {"id": "p1", "name": "tone", "tags": [], "created_at": "2026-01-02"}
    found = helicone.read({"data": [{**prompt, "versions": {"data": [version], "error": None}}], "error": None})
    told_first = {"number": 1, "system_prompt": "Be kind.", "model": "gpt-4o", "commit_message": "1.0: first"}
    assert found.project["prompts"] == {
        "tone": {"versions": [told_first], "active_version": 1, "labels": {"production": 1}}
    }
    assert found.notes == []


def test_helicone__environment__is_a_label() -> None:
    prompt = helicone_of({}, environments=["production"]).project["prompts"]["p"]
    assert (prompt["labels"], prompt["active_version"]) == ({"production": 1}, 1)


def test_helicone__model_of_the_version__counts_where_the_body_has_none() -> None:
    assert helicone_of({}, model="gpt-4o").project["prompts"]["p"]["versions"][0]["model"] == "gpt-4o"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("origin", "content", "sentence"),
    [
        ("langfuse", "{", "prompts.json: Is no JSON: "),
        ("langfuse", '{"data": [], "data": []}', "prompts.json: Is no JSON: data is there twice"),
        ("langfuse", "[" * 100_000, "prompts.json: Is no JSON: "),
        ("langfuse", "5", "Must be a list of versions of prompts."),
        ("langfuse", '[{"name": "p", "versions": [1, 2]}]', "0.version: Is needed: the API's list"),
        (
            "langfuse",
            json.dumps({"data": [{"name": "p", "type": "text", "versions": [1], "labels": []}], "meta": {"page": 1}}),
            "0.version: Is needed: the API's list of prompts has no contents",
        ),
        ("langfuse", '[{"version": 1, "prompt": "a"}]', "0.name: Is needed."),
        ("langfuse", '[{"name": "p", "version": 1, "prompt": 5}]', "0.prompt: Must be a text or a list of messages."),
        (
            "langfuse",
            json.dumps([{"name": "p", "version": 1, "prompt": "a"}] * 2),
            "1.version: Version 1 of p is there twice.",
        ),
        ("helicone", "{}", "0.name: Is needed: a version by itself does not name its prompt."),
        ("helicone", '[{"name": "p", "versions": 1}]', "0.versions: Must be a list."),
        ("helicone", json.dumps([{"name": "p", "versions": []}] * 2), "1.name: p is there twice."),
    ],
)
def test_import_from__wrong_prompts__says_where(origin: str, content: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "prompts.json"
    file.write_text(content)
    with pytest.raises(CommandError) as raised:
        output("import_from", origin, str(file), "--project", "p", "--yes")
    assert sentence in str(raised.value)
    assert not Project.objects.exists()


def test_read__numbers_as_texts__are_numbers_and_what_is_none_is_left_out() -> None:
    found = langfuse_of(version="2", config={"max_tokens": "200", "temperature": "warm"})
    [version] = found.project["prompts"]["p"]["versions"]
    assert (version["number"], version["max_tokens"], "temperature" in version) == (2, 200, False)
    assert told(found)["0.config.temperature"] == "is no number, and is left out"

    found = helicone_of({"max_tokens": "2e2", "temperature": "0.5"}, minor_version="3")
    [version] = found.project["prompts"]["p"]["versions"]
    assert (version["max_tokens"], version["temperature"]) == (200, 0.5)
