"""`manage.py import_from portkey`: configs in the shapes of Portkey's documentation and API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.models import Project
from gateway.configuration.origins.portkey import read
from gateway.configuration.problems import InvalidConfigurationError
from gateway.pipeline.candidates import allowed_names, candidates_of
from gateway.selectors import model_groups, project_settings
from gateway.snapshot.loader import load_project
from integrations.access.credentials import credentials_of
from integrations.models import ProviderIntegration
from tests.gateway.configuration.commands import output
from tests.gateway.configuration.origins.accounted import told

NESTED: dict[str, Any] = {
    "retry": {"attempts": 3, "on_status_codes": [429]},
    "cache": {"mode": "semantic", "max_age": 600},
    "strategy": {"mode": "fallback", "onStatusCodes": [429, 500]},
    "targets": [
        {
            "strategy": {"mode": "loadbalance"},
            "targets": [
                {"provider": "openai", "virtualKey": "main-258f4d", "weight": 0.7,
                 "overrideParams": {"model": "gpt-4o"}},
                {"provider": "azure-openai", "virtual_key": "west-4110dd", "weight": 0.3, "azure_resource_name": "west",
                 "azure_deployment_id": "four-o", "azure_api_version": "2024-10-21"},
            ],
        },
        {"provider": "@anthropic-eu", "override_params": {"model": "claude-sonnet-5", "temperature": 0.2},
         "request_timeout": 5000},
    ],
}  # fmt: skip


@pytest.mark.django_db
def test_import_from__nested_config__is_a_group_of_the_same_models_and_is_planned_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "configs.json"
    file.write_text(
        json.dumps({"success": True, "data": [{"name": "answers", "slug": "pc-answers-1", "config": NESTED}]})
    )
    command = ("import_from", "portkey", str(file), "--project", "moved")

    shown = output(*command, "--plan")
    for name in ("MAIN_258F4D_API_KEY", "WEST_4110DD_API_KEY", "ANTHROPIC_EU_API_KEY"):
        assert f"(the variable {name}, which is not there)" in shown
        monkeypatch.setenv(name, f"key-of-{name}")
    output(*command, "--yes")

    project = Project.objects.get(name="moved")
    assert dict(model_groups(project.pk)["answers"].weights) == {
        "main-258f4d/gpt-4o": 7, "west-4110dd/four-o": 3, "anthropic-eu/claude-sonnet-5": 0,
    }  # fmt: skip
    settings = project_settings(project.pk)
    assert (settings.retry_max_attempts, settings.cache_ttl_seconds) == (4, 600)
    rows = {row.name: row for row in ProviderIntegration.objects.filter(project=project)}
    assert {name: row.provider for name, row in rows.items()} == {
        "main-258f4d": "openai", "west-4110dd": "azure_openai", "anthropic-eu": "anthropic",
    }  # fmt: skip
    assert rows["west-4110dd"].base_url == "https://west.openai.azure.com"
    assert rows["anthropic-eu"].default_parameters == {"temperature": 0.2}
    assert credentials_of(rows["main-258f4d"]).secret == "key-of-MAIN_258F4D_API_KEY"
    snapshot = load_project(project.pk, {}, 1)
    allowed = allowed_names(snapshot, None, ())
    for member in model_groups(project.pk)["answers"].weights:
        (candidate,) = candidates_of(snapshot, member, allowed)
        assert f"{candidate.deployment}/{candidate.upstream_model}" == member
    assert "No changes" in output(*command, "--plan")


def test_read__every_value__is_carried_or_told() -> None:
    found = told(read({"answers": NESTED}, {}))

    assert found["answers"] == "clients send answers as model, in place of the config's id"
    assert {path for path in found if path.startswith("answers.")} == {
        "answers.retry", "answers.retry.on_status_codes.0", "answers.cache", "answers.cache.mode",
        "answers.strategy.on_status_codes.0", "answers.strategy.on_status_codes.1", "answers.targets.0.targets.0",
        "answers.targets.0.targets.1", "answers.targets.1", "answers.targets.1.override_params",
        "answers.targets.1.request_timeout",
    }  # fmt: skip


def test_read__one_config_by_itself__model_of_the_client__is_told_what_to_send() -> None:
    found = read({"virtual_key": "openai-key-1a2b", "retry": {"attempts": 0}}, {})

    assert found.project["integrations"] == {
        "openai-key-1a2b": {"provider": "openai", "api_key": {"env": "OPENAI_KEY_1A2B_API_KEY"}}
    }
    assert found.project["settings"] == {"retry_enabled": False, "retry_max_attempts": 1}
    assert "clients send openai-key-1a2b/<model>" in [note.text for note in found.notes][-2:][0]


def test_read__more_than_is_possible_here__is_bounded_and_told() -> None:
    config = {"provider": "openai", "retry": {"attempts": 12}, "cache": {"mode": "simple", "max_age": 31 * 86_400}}
    found = read(config, {})

    assert found.project["settings"] == {
        "retry_enabled": True, "retry_max_attempts": 10, "cache_ttl_seconds": 30 * 86_400,
    }  # fmt: skip
    assert told(found)["portkey.retry.attempts"] == "at most 10 attempts are made here"
    assert told(found)["portkey.cache.max_age"] == "answers are kept for at most 30 days"


def test_read__conditional__takes_the_default_and_tells_the_conditions() -> None:
    config = {
        "strategy": {"mode": "conditional", "default": "b", "conditions": [{"query": {}, "then": "a"}]},
        "targets": [
            {"name": "a", "provider": "openai", "override_params": {"model": "gpt-4o"}},
            {"name": "b", "provider": "groq", "override_params": {"model": "llama-3.3-70b"}},
        ],
    }
    found = read({"by-plan": config}, {})

    assert found.project["model_groups"]["by-plan"]["members"] == [{"model": "groq/llama-3.3-70b"}]
    assert "do not depend on metadata" in told(found)["by-plan.strategy.conditions.0.then"]


def test_read__target_without_a_provider__is_left_out_and_named() -> None:
    found = read({"targets": [{"virtual_key": "house-77", "override_params": {"model": "m"}}]}, {})

    assert found.project == {}
    assert told(found)["portkey.targets.0"] == (
        "is left out: no provider here is house-77; say it in the field provider"
    )


@pytest.mark.parametrize("values", ["text", [{"name": "a"}], 7])
def test_read__another_form__is_refused(values: Any) -> None:
    with pytest.raises(InvalidConfigurationError):
        read(values, {})
