"""What `manage.py apply` refuses: one sentence with file, line and field, and nothing is changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.models import Project
from tests.gateway.configuration.commands import output, project, refusal
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

_HEAD = "format: prompt-gateway/configuration\nformat_version: 1\n"


@pytest.fixture(autouse=True)
def unchanged() -> object:
    yield
    assert not Project.objects.exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "FILE: Is no object: a configuration has format and projects."),
        ("- a", "FILE:1: Is no object: a configuration has format and projects."),
        ("projects: {}", "FILE:1: format: Must be prompt-gateway/configuration."),
        (_HEAD.replace("1", "2"), "FILE:2: format_version: Must be 1."),
        (_HEAD + "project: {}", "FILE:3: project: There is no such field beside the projects."),
        (_HEAD + "projects: []", "FILE:3: projects: Must be an object of at least one project by name."),
        (_HEAD + "projects: {a: 1}", "FILE:3: projects.a: Must be an object of sections."),
        (_HEAD + "projects: {' ': {}}", "FILE:3: projects. : The name of a project has 1 to 100 printable characters."),
        ("a: [1", "FILE:2: Is no YAML: did not find expected ',' or ']'."),
        ("a: *nobody", "FILE:1: Is no YAML: found undefined alias."),
        ("a: 1\n---\nb: 2", "FILE:2: Is no YAML: but found another document."),
        ("a: !!python/object:os.system {}", "FILE:1: a: A value of the type tag:yaml.org,2002:python/"),
        ("a: !own 1", "FILE:1: a: A value of the type !own has no place here."),
        (_HEAD + "projects:\n  a: {}\n  a: {}", "FILE:5: projects.a: Is there twice."),
        ("? [a, b]\n: 1", "FILE:1: The name of a field is a text."),
        (b"a: 1\nb: \xff", "FILE:2: Is not UTF-8."),
        ("a: \x00", "FILE: Is no YAML: "),
    ],
)
def test_apply__no_configuration__says_where(text: str | bytes, sentence: str, tmp_path: Path) -> None:
    refused = refusal(text, tmp_path)
    assert refused.startswith(sentence)
    assert refused.endswith("Nothing was changed.")


@tabled
def test_apply__wrong_value__says_where(lines: list[str], sentence: str, tmp_path: Path) -> None:
    refused = refusal(project(*lines), tmp_path)
    assert sentence in refused
    assert "sk-1234567890" not in refused


def test_apply__secret_in_a_long_file__says_so(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * (64 * 1024 + 1))
    refused = refusal(project(f'integrations: {{openai: {{api_key: {{file: "{tmp_path}/key"}}}}}}'), tmp_path)
    assert "/key holds no secret: Has more than 64 KiB." in refused


def test_apply__secret_in_a_pipe_that_nobody_writes__says_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key")
    refused = refusal(project(f'integrations: {{openai: {{api_key: {{file: "{tmp_path}/key"}}}}}}'), tmp_path)
    assert "/key holds no secret: Is no regular file." in refused


def test_apply__several_wrong_values__all_at_once(tmp_path: Path) -> None:
    refused = refusal(project("teams:", "  a: {rate_limit_rpm: 0}", "  b: {rate_limit_tpm: 0}"), tmp_path)
    assert [line.partition(": ")[0] for line in refused.splitlines()] == ["FILE:6", "FILE:7", "Nothing was changed."]


def test_apply__missing_file__says_so(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"nothing\.yaml: Cannot be read: No such file or directory"):
        output("apply", str(tmp_path / "nothing.yaml"))


def test_apply__file_of_many_megabytes__is_refused_by_its_size(tmp_path: Path) -> None:
    with (tmp_path / "gateway.yaml").open("wb") as file:
        file.truncate(32_000_001)
    with pytest.raises(Exception, match=r"gateway\.yaml: Has more than 32 MB"):
        output("apply", str(tmp_path / "gateway.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 5000,
        "[" * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "a: " + "{b: " * 100_000,
        "\n".join(" " * depth + f"k{depth}:" for depth in range(500)),
        "a: &a [*a]",
    ],
)
def test_apply__nested_without_end__is_refused(text: str, tmp_path: Path) -> None:
    assert refusal(text, tmp_path).startswith("FILE")


def test_apply__aliases_of_aliases__stand_for_too_much(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)]
    assert "Aliases stand for more than 2,000,000 values here." in refusal("\n".join(lines), tmp_path)


def test_apply__names_twice_and_values_that_are_wrong__are_told_together(tmp_path: Path) -> None:
    text = project(
        "integrations:",
        "  gpt-eu: {provider: azure_openai, weight: heavy}",
        "api_keys:",
        "  ci: {scopes: [gateway]}",
        "  ci: {scopes: [gateway]}",
        "teams: {search: {rate_limit_rpm: 1, rate_limit_rpm: 2}}",
    )
    text += "  other:\n    teams: {search: {rate_limit_rpm: 0}}\n"

    lines = refusal(text, tmp_path, "--new-keys", str(tmp_path / "keys.json")).splitlines()

    assert "FILE:6: projects.shop.integrations.gpt-eu.weight: Must be a whole number." in lines
    assert "FILE:9: projects.shop.api_keys.ci: Is there twice." in lines
    assert "FILE:10: projects.shop.teams.search.rate_limit_rpm: Is there twice." in lines
    assert any(line.startswith("FILE:12: projects.other.teams.search.rate_limit_rpm: ") for line in lines)
    assert lines[-1] == "Nothing was changed."
