"""`manage.py import_from litellm`: five files in the shapes of published ones, and each of the settings used most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError

from core.keys.services import find_key, hash_key
from core.models import Project
from gateway.configuration.origins.litellm import read
from gateway.configuration.origins.remaining import Imported, number_of
from gateway.configuration.problems import InvalidConfigurationError
from gateway.configuration.secrets import Secret
from gateway.pipeline.candidates import allowed_names, candidates_of
from gateway.selectors import model_groups, project_settings
from gateway.snapshot.loader import load_project
from gateway.snapshot.project import ProjectSnapshot
from integrations.access.credentials import credentials_of
from integrations.models import ProviderIntegration
from tests.gateway.configuration.commands import output
from tests.gateway.configuration.origins.accounted import told, unaccounted
from tests.tables.cases import tabled

FILES = Path(__file__).parent / "files"
PUBLISHED = sorted(FILES.glob("litellm-*.yaml"))
ENVIRONMENT = {
    "HOUSE_AZURE_BASE": "https://house.openai.azure.com/",
    "HOUSE_AZURE_VERSION": "2024-10-21",
    "ATELIER_LOCAL_BASE": "http://127.0.0.1:8080/v1",
    "ATELIER_PROJECT": "atelier",
    "ATELIER_LOCATION": "europe-west4",
    "SLACK_WEBHOOK_URL": "https://hooks.slack.example.com/services/T0",
}


def imported(text: str, environ: dict[str, str] | None = None) -> Imported:
    return read(yaml.safe_load(text), ENVIRONMENT if environ is None else environ)


def model(**params: Any) -> str:
    entry = {"model_name": "m", "litellm_params": {"model": "openai/gpt-4o", "api_key": "os.environ/K", **params}}
    return yaml.safe_dump({"model_list": [entry]})


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_read__published_shapes__nothing_is_lost_in_silence(file: Path) -> None:
    values = yaml.safe_load(file.read_text())
    environ = {**ENVIRONMENT, **values.get("environment_variables", {})}
    assert unaccounted(values, read(values, ENVIRONMENT), environ) == []


@pytest.mark.django_db
@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_import_from__published_shapes__import_and_change_nothing_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = tmp_path / "account.json"
    account.write_text(
        '{"client_email": "a@b", "private_key": "k", "token_uri": "https://oauth2.googleapis.com/token"}'
    )
    for name, value in {**ENVIRONMENT, "GOOGLE_APPLICATION_CREDENTIALS": str(account)}.items():
        monkeypatch.setenv(name, value)
    for name in _references(yaml.safe_load(file.read_text())):
        if name not in ENVIRONMENT:
            monkeypatch.setenv(name, f"secret-of-{name.lower()}-0123456789")
    command = ("import_from", "litellm", str(file), "--project", "moved")

    printed = output(*command, "--yes")
    again = output(*command, "--check")

    assert printed.endswith("Done.\n")
    assert "No changes: all is as the file says." in again
    assert "secret-of-" not in printed + again
    assert "in-the-file-0123" not in printed
    _assert_reached(yaml.safe_load(file.read_text()), Project.objects.get(name="moved"))


@pytest.mark.django_db
def test_import_from__everything__is_what_it_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEPOT_AWS_ID", "DEPOT_ANTHROPIC_KEY"):
        monkeypatch.setenv(name, f"secret-of-{name}")
    monkeypatch.setenv("SLACK_WEBHOOK_URL", ENVIRONMENT["SLACK_WEBHOOK_URL"])

    output("import_from", "litellm", str(FILES / "litellm-router.yaml"), "--project", "depot", "--yes")

    depot = Project.objects.get(name="depot")
    rows = {row.name: row for row in ProviderIntegration.objects.filter(project=depot)}
    assert sorted(rows) == ["anthropic", "bedrock", "bedrock-2", "ollama", "openai"]
    europe, america = rows["bedrock"], rows["bedrock-2"]
    assert (europe.weight, europe.rpm, europe.tpm, europe.options["region"]) == (3, 60, 100_000, "eu-west-1")
    assert (america.priority, america.rpm) == (2, 30)
    assert credentials_of(europe).extra["secret_access_key"] == "aws-secret-in-the-file"
    assert credentials_of(rows["anthropic"]).secret == "secret-of-DEPOT_ANTHROPIC_KEY"
    assert {"model": "house", "deployment": "anthropic.claude-sonnet-5"} in europe.served_models
    assert rows["ollama"].base_url == "http://10.0.0.9:11434/v1"
    assert rows["openai"].default_parameters == {"top_k": 3}
    assert credentials_of(rows["openai"]).extra_headers == {"x-team": "depot"}
    groups = model_groups(depot.pk)
    assert list(groups["small"].weights) == ["ollama/small", "bedrock/claude-house", "anthropic/claude-house"]
    assert groups["claude-house"].weights["openai/gpt-4o"] == 0
    assert next(iter(groups["gpt-4o"].weights)) == "openai/gpt-4o"
    settings = project_settings(depot.pk)
    assert (settings.retry_max_attempts, str(settings.monthly_budget_usd)) == (10, "1000")
    assert settings.budget_hard_stop
    assert settings.fallback_order == ("openai",)
    assert settings.guardrails.pii_block_on_detect
    assert settings.guardrails.trust_mode == "monitor"
    assert depot.alert_channels.get().receives_project_alerts


@pytest.mark.django_db
def test_import_from__master_key__clients_go_on_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "sk-a-master-key-of-litellm")
    file = tmp_path / "config.yaml"
    file.write_text("general_settings: {master_key: os.environ/MASTER}\n")
    output("import_from", "litellm", str(file), "--project", "p", "--yes")
    record = find_key(hash_key("sk-a-master-key-of-litellm"))
    assert record is not None
    assert record.scopes == {"gateway", "manage"}


@pytest.mark.django_db
def test_import_from__settings_of_a_project_that_is_there__stay(tmp_path: Path) -> None:
    text = "format: prompt-gateway/configuration\nformat_version: 1\nprojects: {p: {settings: {log_content: false}}}\n"
    (tmp_path / "own.yaml").write_text(text)
    output("apply", str(tmp_path / "own.yaml"), "--yes")
    (tmp_path / "config.yaml").write_text("router_settings: {num_retries: 4}\n")
    output("import_from", "litellm", str(tmp_path / "config.yaml"), "--project", "p", "--yes")
    settings = project_settings(Project.objects.get(name="p").pk)
    assert (settings.log_content, settings.retry_max_attempts) == (False, 5)


@pytest.mark.django_db
def test_import_from__output__is_a_file_for_apply_without_secrets(tmp_path: Path) -> None:
    written = tmp_path / "gateway.yaml"
    source = str(FILES / "litellm-router.yaml")
    printed = output("import_from", "litellm", source, "--project", "depot", "--output", str(written))
    text = written.read_text()
    assert "litellm-router.yaml:" in printed
    assert not Project.objects.exists()
    assert "in-the-file" not in text
    integrations = yaml.safe_load(text)["projects"]["depot"]["integrations"]
    assert integrations["openai"]["api_key"] == {"env": "DEPOT_OPENAI_API_KEY"}
    assert integrations["anthropic"]["api_key"] == {"env": "DEPOT_ANTHROPIC_KEY"}


# The settings that published configurations use most, each by itself.


@tabled
def test_read__model__leads_to_the_provider(theirs: str, provider: str, own: str) -> None:
    params = {"aws_region_name": "us-east-1"} if provider == "bedrock" else {}
    base = {"api_base": "https://a.example.com/v1"} if provider in ("azure_openai", "vllm") else {}
    (entry,) = imported(model(model=theirs, **params, **base)).project["integrations"].values()
    assert entry.get("provider", provider) == provider
    assert entry["models"] == [{"model": "m", **({} if own == "m" else {"deployment": own})}]


def test_read__api_base__of_another_host_is_a_compatible_server() -> None:
    found = imported(model(api_base="http://10.0.0.1:8000/v1")).project["integrations"]
    assert found["openai_compatible"]["base_url"] == "http://10.0.0.1:8000/v1"


def test_read__api_key__is_a_reference_or_the_vendors_variable() -> None:
    assert imported(model()).project["integrations"]["openai"]["api_key"] == {"env": "K"}
    found = imported("model_list: [{model_name: m, litellm_params: {model: groq/a}}]").project["integrations"]
    assert found["groq"]["api_key"] == {"env": "GROQ_API_KEY"}


def test_read__limits_and_weight__are_each_deployments_own() -> None:
    entries = [
        {
            "model_name": name,
            "litellm_params": {"model": "openai/gpt-4o", "api_key": "os.environ/K", "rpm": 5, "order": 2},
        }
        for name in ("a", "b")
    ]
    found = imported(yaml.safe_dump({"model_list": entries})).project["integrations"]
    assert [(one["rpm"], one["priority"], one["models"][0]["model"]) for one in found.values()] == [
        (5, 2, "a"),
        (5, 2, "b"),
    ]


def test_read__parameters__are_defaults_of_the_provider() -> None:
    found = imported(model(temperature=0, max_tokens=50, reasoning_effort="low")).project["integrations"]["openai"]
    assert found["default_parameters"] == {"temperature": 0, "max_tokens": 50, "reasoning_effort": "low"}


def test_read__costs__are_prices_of_a_million_tokens() -> None:
    found = imported(model(input_cost_per_token=0.0000025, output_cost_per_token=0.00001)).project
    assert found["integrations"]["openai"]["prices"] == [
        {"model": "m", "input_cost_per_1m": "2.5", "output_cost_per_1m": "10"}
    ]


def test_read__fallbacks__are_a_group_of_the_same_name() -> None:
    text = model() + "router_settings: {fallbacks: [{m: [gpt-4.1, o4-mini]}]}\n"
    assert imported(text).project["model_groups"]["m"] == {
        "strategy": "ordered",
        "members": [{"model": "openai/m"}, {"model": "gpt-4.1"}, {"model": "o4-mini"}],
    }


def test_read__name_with_its_provider__is_none_of_those_without() -> None:
    found = imported((FILES / "litellm-chains.yaml").read_text()).project["model_groups"]
    members = [one["model"] for one in found["scout"]["members"]]
    assert (found["scout"]["strategy"], members) == ("ordered", ["together/scout", "groq/scout", "openrouter/scout"])


def test_read__same_name_at_a_provider_of_its_own__is_told() -> None:
    entries = [
        {"model_name": "x", "litellm_params": {"model": "xai/x", "api_key": "os.environ/K"}},
        {"model_name": "groq/x", "litellm_params": {"model": "groq/x", "api_key": "os.environ/K"}},
    ]
    assert "served by all that have it" in told(imported(yaml.safe_dump({"model_list": entries})))["model_list"]


def test_read__fallbacks_of_a_vendors_name__keep_it_and_another_name_is_told() -> None:
    found = imported("litellm_settings: {fallbacks: [{gpt-4o: [claude-sonnet-5], big one: [gpt-4o]}]}")
    assert list(found.project["model_groups"]) == ["gpt-4o", "group-big-one"]
    assert list(told(found)) == ["litellm_settings.fallbacks.0.big one"]
    assert "clients have to send group-big-one" in told(found)["litellm_settings.fallbacks.0.big one"]


def test_read__aliases__are_names_of_the_same_deployments() -> None:
    found = imported(model() + "router_settings: {model_group_alias: {n: m}}\n")
    assert [one["model"] for one in found.project["integrations"]["openai"]["models"]] == ["m", "n"]


def test_read__retries__are_attempts() -> None:
    settings = imported("litellm_settings: {num_retries: 0}").project["settings"]
    assert settings == {"retry_enabled": False, "retry_max_attempts": 1}


def test_read__cache__has_its_seconds() -> None:
    settings = imported("litellm_settings: {cache: true, cache_params: {ttl: 600}}").project["settings"]
    assert settings == {"cache_ttl_seconds": 600}


def test_read__budget__is_the_months_or_is_told() -> None:
    for duration in ("1mo", "30d", "31d"):
        found = imported(f"litellm_settings: {{max_budget: 9, budget_duration: {duration}}}")
        assert found.project["settings"] == {"monthly_budget_usd": 9, "budget_hard_stop": True}
        assert ("litellm_settings.budget_duration" in told(found)) == duration.endswith("d")
    for duration in ("1m", "30m", "1h", "30s", "7d", "2mo"):
        found = imported(f"litellm_settings: {{max_budget: 9, budget_duration: {duration}}}")
        assert "settings" not in found.project
        assert "by the month" in told(found)["litellm_settings.max_budget"]


@pytest.mark.django_db
def test_import_from__role_of_aws__is_that_of_the_hosts(tmp_path: Path, settings: Any) -> None:
    settings.AMBIENT_CREDENTIALS = True
    params = {"model": "bedrock/anthropic.claude-sonnet-5", "aws_region_name": "eu-west-1", "aws_role_name": "arn:r"}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"model_list": [{"model_name": "m", "litellm_params": params}]}))

    assert "give it what this role may" in output("import_from", "litellm", str(file), "--project", "moved", "--yes")

    row = ProviderIntegration.objects.get(project__name="moved")
    assert row.options == {"region": "eu-west-1", "credentials": "ambient"}
    assert not row.encrypted_extra


@pytest.mark.django_db
def test_import_from__plan_without_any_secret__names_each_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLACK_WEBHOOK_URL", raising=False)
    file = tmp_path / "config.yaml"
    vertex = {"model": "vertex_ai/gemini-2.5-pro", "vertex_project": "p", "vertex_location": "europe-west4"}
    served = {
        "claude": {"model": "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "aws_region_name": "eu-west-1"},
        "gemini": vertex,
        "gpt-4o": {"model": "openai/gpt-4o", "api_key": "os.environ/ABSENT"},
    }
    entries = [{"model_name": name, "litellm_params": params} for name, params in served.items()]
    general = {"master_key": "os.environ/ABSENT_MASTER_KEY"}
    file.write_text(yaml.safe_dump({"model_list": entries, "general_settings": general}))

    shown = output("import_from", "litellm", str(file), "--project", "moved", "--plan")

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ABSENT", "ABSENT_MASTER_KEY"):
        assert f"(the variable {name}, which is not there)" in shown
    assert "GOOGLE_APPLICATION_CREDENTIALS, which is not there)" in shown
    assert not Project.objects.filter(name="moved").exists()
    with pytest.raises(CommandError, match="ABSENT is not there or empty"):
        output("import_from", "litellm", str(file), "--project", "moved", "--yes")


@tabled
def test_read__without_a_counterpart__is_told_by_its_place(text: str, place: str) -> None:
    assert told(imported(text))[place]


@tabled
def test_read__another_form__names_the_field(text: str, problem: str) -> None:
    with pytest.raises(InvalidConfigurationError) as raised:
        imported(text)
    assert str(raised.value).startswith(problem)


def test_read__vendors_variable_that_the_file_sets__is_the_secret() -> None:
    model_list = "model_list: [{model_name: m, litellm_params: {model: openai/gpt-4o}}]"
    found = imported(f"{model_list}\nenvironment_variables: {{OPENAI_API_KEY: k}}")
    assert found.project["integrations"]["openai"]["api_key"] == Secret("k")
    assert found.notes == []


@pytest.mark.django_db
@tabled
def test_import_from__wrong_file__says_where_and_changes_nothing(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text + "\n")
    with pytest.raises(CommandError) as raised:
        output("import_from", "litellm", str(file), "--project", "p", "--yes")
    assert sentence in str(raised.value)
    assert str(raised.value).endswith("Nothing was changed.")
    assert not Project.objects.exists()


# Of vendors that are not here, which the import says.
_LEFT_OUT = {"film", "voice"}


def _assert_reached(values: dict[str, Any], project: Project) -> None:
    """Asserts that requests for each name of the file reach a deployment of the vendor's model."""
    snapshot = load_project(project.pk, {}, 1)
    for entry in values["model_list"]:
        name, own = entry["model_name"].replace("*", "gpt-4o"), entry["litellm_params"]["model"].replace("*", "gpt-4o")
        if name not in _LEFT_OUT:
            assert any(own.endswith(reached) for reached in _reached(snapshot, name)), name


def _reached(snapshot: ProjectSnapshot, name: str) -> Iterator[str]:
    """Yields the vendors' names of the models that a request for a name is sent to."""
    for model in snapshot.groups[name].weights if name in snapshot.groups else [name]:
        for candidate in candidates_of(snapshot, model, allowed_names(snapshot, None, ())):
            deployment = snapshot.deployments.get(candidate.deployment)
            models = deployment.models if deployment is not None else {}
            yield models.get(candidate.upstream_model, candidate.upstream_model)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("os.environ/"):
        yield value.removeprefix("os.environ/")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(inner)


@pytest.mark.django_db
def test_import_from__numbers_as_texts__are_numbers_and_what_is_none_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "sk-of-this-test")
    text = model(input_cost_per_token="6e-07", output_cost_per_token="2.4E-6", rpm=" 60 ", max_tokens="200", tpm="many")
    file = tmp_path / "config.yaml"
    file.write_text(text + "router_settings: {num_retries: often}\n", encoding="utf-8")

    printed = output("import_from", "litellm", str(file), "--project", "moved", "--yes")

    row = ProviderIntegration.objects.get(project__name="moved")
    assert (row.rpm, row.tpm, row.default_parameters) == (60, None, {"max_tokens": 200})
    assert imported(text).project["integrations"]["openai"]["prices"] == [
        {"model": "m", "input_cost_per_1m": "0.6", "output_cost_per_1m": "2.4"}
    ]
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "tpm" in one)
    assert f"{file}:{line}: model_list.0.litellm_params.tpm: is no number, and is left out" in printed
    assert "router_settings.num_retries: is no number, and is left out" in printed


@tabled
def test_number_of__texts_and_values__finite_numbers_alone(given: Any, number: float | None) -> None:
    assert number_of(given) == number
