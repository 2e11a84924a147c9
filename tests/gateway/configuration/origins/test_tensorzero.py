"""`manage.py import_from tensorzero`: models, functions as prompts, and each of the settings used most."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from django.core.management import CommandError

from core.models import Project
from gateway.configuration.origins.remaining import Imported
from gateway.configuration.origins.tensorzero import read
from gateway.selectors import model_groups
from integrations.models import ProviderIntegration
from prompts.models import PromptConfig
from tests.gateway.configuration.commands import output
from tests.gateway.configuration.origins.accounted import told, unaccounted
from tests.tables.cases import tabled

FILES = Path(__file__).parent / "files"
WHOLE = FILES / "tensorzero.toml"


def imported(text: str, folder: Path = FILES) -> Imported:
    return read(
        tomllib.loads(text), folder, {"BASE": "https://a.example.com", "TZ_AZURE_ENDPOINT": "https://b.example.com"}
    )


def provider(fields: str) -> str:
    return f'[models.m]\nrouting = ["p"]\n[models.m.providers.p]\n{fields}\n'


@pytest.mark.django_db
def test_import_from__whole__again_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ_AZURE_ENDPOINT", "https://west.openai.azure.com")
    for name in ("OPENAI_API_KEY", "TZ_AZURE_KEY", "TZ_HOUSE_KEY"):
        monkeypatch.setenv(name, "sk-1234567890")
    command = ("import_from", "tensorzero", str(WHOLE), "--project", "moved")

    printed = output(*command, "--yes")
    assert "No changes: all is as the file says." in output(*command, "--check")

    moved = Project.objects.get(name="moved")
    rows = {row.name: row for row in ProviderIntegration.objects.filter(project=moved)}
    assert sorted(rows) == ["azure_openai", "openai", "openai-2", "openai_compatible"]
    assert rows["openai-2"].served_models == []
    assert rows["azure_openai"].served_models == [{"model": "writer", "deployment": "mini-west"}]
    assert list(model_groups(moved.pk)["writer"].weights) == ["openai/writer", "azure_openai/writer"]
    greet = PromptConfig.objects.get(project=moved)
    short, long = greet.versions.order_by("number")
    assert (short.system_prompt, short.model, short.temperature, short.max_tokens) == (
        "Greet {{ name }}.",
        "writer",
        0.4,
        100,
    )
    assert short.response_format is not None
    assert short.response_format["json_schema"]["schema"]["properties"] == {"greeting": {"type": "string"}}
    assert [message["role"] for message in long.messages] == ["system", "user"]
    assert long.model == "openai/gpt-4o-mini"
    assert {label.name: label.version.number for label in greet.labels.all()} == {"short": 1, "long_one": 2}
    for words in (
        "models.strange.providers.x: no provider here is called sagemaker_of_nobody",
        "functions.greet: its variants are versions",
        "functions.greet.variants.judge: a variant of type experimental_best_of_n_sampling",
        "functions.plain.variants.only: only has no template",
        "{% if formal %} is no placeholder here",
        "metrics.liked.type: scores need no declaration",
        "gateway.bind_address: the service is set up by environment variables",
    ):
        assert words in printed


def test_read__whole__nothing_is_lost_in_silence() -> None:
    values, environ = tomllib.loads(WHOLE.read_text()), {"TZ_AZURE_ENDPOINT": "https://b.example.com"}
    # What a file says is read from it, names of providers are those of the file alone, and JSON's mode is the schema's.
    known = {"templates", "system_template", "output_schema", "json_mode", "type", "routing"}
    left = unaccounted(values, read(values, FILES, environ), environ)
    assert [place for place in left if known.isdisjoint(place.split("."))] == []


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("openai", "openai"), ("azure", "azure_openai"), ("anthropic", "anthropic"), ("google_ai_studio_gemini", "google"),
     ("groq", "groq"), ("together", "together"), ("mistral", "mistral"), ("vllm", "vllm")],
)  # fmt: skip
def test_read__type__is_the_provider(theirs: str, ours: str) -> None:
    assert list(imported(provider(f'type = "{theirs}"\nmodel_name = "x"')).project["integrations"]) == [ours]


def test_read__model_name__is_the_vendors() -> None:
    found = imported(provider('type = "openai"\nmodel_name = "gpt-4o"')).project["integrations"]["openai"]
    assert found["models"] == [{"model": "m", "deployment": "gpt-4o"}]


def test_read__api_base__is_a_compatible_server() -> None:
    found = imported(provider('type = "openai"\nmodel_name = "x"\napi_base = "https://a.example.com/v1"')).project
    assert found["integrations"]["openai_compatible"]["base_url"] == "https://a.example.com/v1"


@pytest.mark.parametrize("text", ["${BASE}", "env::BASE"])
def test_read__endpoint__with_a_variable_is_filled_in(text: str) -> None:
    found = imported(provider(f'type = "azure"\ndeployment_id = "x"\nendpoint = "{text}"')).project["integrations"]
    assert found["azure_openai"]["base_url"] == "https://a.example.com"


@pytest.mark.parametrize(
    ("location", "reference"),
    [("env::K", {"env": "K"}), ("file::/k", {"file": "/k"}), ("path::/k", {"file": "/k"})],
)
def test_read__api_key_location__is_a_reference(location: str, reference: dict[str, str]) -> None:
    found = imported(provider(f'type = "openai"\nmodel_name = "x"\napi_key_location = "{location}"')).project
    assert found["integrations"]["openai"]["api_key"] == reference


def test_read__api_key_of_the_request__is_told() -> None:
    found = imported(provider('type = "openai"\nmodel_name = "x"\napi_key_location = "dynamic::k"'))
    assert "kept by the gateway" in told(found)["models.m.providers.p"]


def test_read__routing__is_the_order_of_a_group() -> None:
    text = provider('type = "groq"\nmodel_name = "x"').replace('["p"]', '["q", "p"]')
    found = imported(text + '[models.m.providers.q]\ntype = "xai"\nmodel_name = "y"\n').project
    assert found["model_groups"]["m"] == {"strategy": "ordered", "members": [{"model": "xai/m"}, {"model": "groq/m"}]}


def test_read__costs__are_prices() -> None:
    text = 'type = "openai"\nmodel_name = "x"\ncost = {input_cost_per_million = 1, output_cost_per_million = 2.5}'
    (price,) = imported(provider(text)).project["integrations"]["openai"]["prices"]
    assert (price["input_cost_per_1m"], price["output_cost_per_1m"]) == ("1", "2.5")


@pytest.mark.parametrize(
    ("theirs", "ours", "provider"),
    [("openai::gpt-4o", "openai/gpt-4o", "openai"), ("google_ai_studio_gemini::g", "google/g", "google")],
)
def test_read__model_of_a_provider__comes_with_access_to_it(theirs: str, ours: str, provider: str) -> None:
    variant = (
        f'[functions.greet.variants.a]\nmodel = "{theirs}"\nsystem_instructions = "functions/greet/short.minijinja"'
    )
    found = imported(f"[functions.greet]\n{variant}")
    assert found.project["prompts"]["greet"]["versions"][0]["model"] == ours
    assert list(found.project["integrations"]) == [provider]
    assert set(found.project["integrations"][provider]) == {"api_key"}


def test_read__model_of_an_unknown_provider__is_told() -> None:
    variant = (
        '[functions.greet.variants.a]\nmodel = "nobody::x"\nsystem_instructions = "functions/greet/short.minijinja"'
    )
    assert "functions.greet.variants.a.model" in told(imported(f"[functions.greet]\n{variant}"))


def test_read__weights__are_told_to_be_a_rollout() -> None:
    found = read(tomllib.loads(WHOLE.read_text()), FILES, {"TZ_AZURE_ENDPOINT": "https://b.example.com"})
    assert "start a rollout" in told(found)["functions.greet.variants.short.weight"]


@pytest.mark.django_db
@tabled
def test_import_from__wrong_file__says_where(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "tensorzero.toml"
    file.write_text(text + "\n")
    with pytest.raises(CommandError) as raised:
        output("import_from", "tensorzero", str(file), "--project", "p", "--yes")
    assert sentence in str(raised.value)
    assert not Project.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["../outside", "deeper/../../outside", "{outside}", "link", "folder/outside"])
@tabled
def test_import_from__file_outside_the_folder__is_refused_by_its_field(name: str, field: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    (folder / "deeper").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.write_text('{"type": "a file of this host"}')
    (folder / "link").symlink_to(outside)
    (folder / "folder").symlink_to(tmp_path, target_is_directory=True)
    name = name.format(outside=outside)
    file = folder / "tensorzero.toml"
    file.write_text(f'{field} = "{name}"\n')

    with pytest.raises(CommandError) as raised:
        output("import_from", "tensorzero", str(file), "--project", "p", "--yes")

    assert f"tensorzero.toml: {field}: The file {name} is not in the folder of the configuration." in str(raised.value)
    assert not Project.objects.exists()


def test_read__configuration_behind_a_link__reads_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(FILES, target_is_directory=True)
    versions = imported(WHOLE.read_text(), tmp_path / "link").project["prompts"]["greet"]["versions"]
    assert versions[0]["system_prompt"] == "Greet {{ name }}."


def test_read__numbers_as_texts__are_numbers_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "brief.txt").write_text("Be brief.", encoding="utf-8")
    text = """
    [functions.f]
    type = "chat"
    [functions.f.variants.v]
    type = "chat_completion"
    model = "openai::gpt-4o"
    system_instructions = "brief.txt"
    temperature = "0.5"
    max_tokens = "many"
    """

    found = imported(text, tmp_path)

    [version] = found.project["prompts"]["f"]["versions"]
    assert (version["temperature"], "max_tokens" in version) == (0.5, False)
    assert told(found)["functions.f.variants.v.max_tokens"] == "is no number, and is left out"
