from __future__ import annotations

import ast
import json
import shlex
import tomllib

import pytest

from console.connect.snippets import Call, tabs_of

_ROOT = "http://127.0.0.1:8000/api/gateway"
# Names that people give to models, prompts and variables.
_NAMES = ["gpt-4o", 'it\'s a "test"', "größe/日本", "$(reboot) `id` \\", "</script>"]


def texts(call: Call) -> dict[str, str]:
    return {tab.name: tab.blocks[min(1, len(tab.blocks) - 1)].text for tab in tabs_of(call)}


def words_of(command: str) -> list[str]:
    """A shell joins lines where `shlex` does not."""
    return shlex.split(command.replace(" \\\n", " "))


@pytest.mark.parametrize("name", _NAMES)
def test_curl__odd_names__arrive_as_they_are(name: str) -> None:
    variables = {name: [name, True, None, 1.5, {"of": name}]}
    words = words_of(texts(Call(_ROOT, name, "svc_x", name, variables))["curl"])

    assert words[:2] == ["curl", f"{_ROOT}/v1/chat/completions"]
    assert "Authorization: Bearer svc_x" in words
    body = json.loads(words[-1])
    assert (body["model"], body["prompt_config"], body["prompt_variables"]) == (name, name, variables)


@pytest.mark.parametrize("tab", ["python", "anthropic"])
@pytest.mark.parametrize("name", _NAMES)
def test_python__odd_names__arrive_as_they_are(tab: str, name: str) -> None:
    variables = {name: [name, True, None, 1.5, {"of": name}]}

    [create] = [
        node
        for node in ast.walk(ast.parse(texts(Call(_ROOT, name, "", name, variables))[tab]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "create"
    ]

    fields = {one.arg: ast.literal_eval(one.value) for one in create.keywords}
    assert fields["model"] == name
    assert fields["extra_body"] == {"prompt_config": name, "prompt_variables": variables}


@pytest.mark.parametrize("name", _NAMES)
def test_codex__odd_names__arrive_as_they_are(name: str) -> None:
    [tab] = [tab for tab in tabs_of(Call(_ROOT, name)) if tab.name == "codex"]
    _, command, kept = (block.text for block in tab.blocks)

    words = words_of(command)
    assert words[words.index("--model") + 1] == name
    overridden = tomllib.loads(words[-2])
    settings = tomllib.loads(kept)
    assert settings["model"] == name
    assert overridden["model_providers"] == settings["model_providers"]
    assert settings["model_providers"]["gateway"]["base_url"] == f"{_ROOT}/v1"


@pytest.mark.parametrize("tab", ["claude-code", "environment"])
@pytest.mark.parametrize("name", _NAMES)
def test_exports__odd_names__arrive_as_they_are(tab: str, name: str) -> None:
    words = words_of(texts(Call(_ROOT, name, "svc_x"))[tab])

    assert any(word.endswith("_KEY=svc_x") or word == "ANTHROPIC_AUTH_TOKEN=svc_x" for word in words)
    assert tab == "environment" or f"ANTHROPIC_MODEL={name}" in words


def test_key__not_known__comes_from_the_variable_everywhere() -> None:
    for name, text in texts(Call(_ROOT, "gpt-4o")).items():
        assert "$KEY" in text or 'os.environ["KEY"]' in text or "process.env.KEY" in text, name


def test_tabs__of_a_prompt__leave_out_what_can_name_none() -> None:
    assert set(texts(Call(_ROOT, "auto", prompt="support"))) == {"curl", "python", "typescript", "anthropic"}
