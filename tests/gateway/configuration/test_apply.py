"""`manage.py apply`: what a file says becomes what the project is."""

from __future__ import annotations

import errno
import json
import re
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from django.conf import settings as service_settings
from django.core.management import CommandError, call_command

from core.keys.services import find_key, hash_key
from core.models import ApiKey, AuditEntry, Project, Team
from gateway.models import AlertChannel, FigureAlert, GatewaySettings, ModelGroupRow
from gateway.project_settings.settings import ProjectSettings
from gateway.selectors import project_settings
from integrations.access.credentials import credentials_of
from integrations.models import ModelPrice, ProviderIntegration
from prompts.models import PromptConfig, PromptLabel
from tests.gateway.configuration.commands import SECRETS, WHOLE, applied, output, project, refusal
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("secrets")
def test_apply__whole_file__makes_everything() -> None:
    printed = output("apply", str(WHOLE), "--yes")

    shop = Project.objects.get(name="shop")
    settings = project_settings(shop.pk)
    assert (settings.retry_max_attempts, settings.guardrails.blocked_tools) == (3, ("shell",))
    assert settings.alert_webhook_url == SECRETS["SHOP_ALERTS"]
    azure = ProviderIntegration.objects.get(project=shop, name="openai-eu")
    assert credentials_of(azure).secret == SECRETS["AZURE_EU_KEY"]
    assert azure.served_models[1] == {"model": "gpt-4o-mini", "deployment": "gpt-4o-mini"}
    anthropic = ProviderIntegration.objects.get(project=shop, name="anthropic")
    assert credentials_of(anthropic).extra_headers == {"x-team": SECRETS["TEAM_HEADER"]}
    assert ModelPrice.objects.get(project=shop).output_cost_per_1m == 15
    assert ModelGroupRow.objects.get(project=shop, name="fast").strategy == "weighted"
    key = ApiKey.objects.get(project=shop, name="ci")
    assert key.team == Team.objects.get(project=shop, name="search")
    record = find_key(hash_key(SECRETS["CI_KEY"]))
    assert record is not None
    assert record.limits is not None
    assert str(record.limits.monthly_budget_usd) == "12.5000000000"
    support = PromptConfig.objects.get(project=shop, name="support")
    assert support.active_version is not None
    assert (support.active_version.number, support.last_version_number) == (2, 2)
    label = PromptLabel.objects.get(config=support, name="production")
    assert (label.version.number, label.is_protected) == (1, True)
    alert = FigureAlert.objects.get(project=shop)
    assert alert.query["filters"]["api_key_id"] == str(key.pk)
    assert {channel.name for channel in alert.channels.all()} == {"on-call", "people"}
    chart = shop.dashboards.get().charts.first()
    assert chart is not None
    assert chart.filters == {"team_id": str(key.team_id)}
    assert shop.trace_destinations.get().endpoint == "https://collector.example.com/v1/traces"
    assert Project.objects.filter(name="empty").exists()
    assert printed.endswith("16 to create, 1 to change, 0 to delete.\nDone.\n")
    assert not [secret for secret in SECRETS.values() if secret in printed]


@pytest.mark.usefixtures("secrets")
def test_apply__twice__changes_nothing() -> None:
    output("apply", str(WHOLE), "--yes")
    before = AuditEntry.objects.count()

    printed = output("apply", str(WHOLE), "--yes", "--prune", "--check")

    assert printed == "No changes: all is as the file says.\n"
    assert AuditEntry.objects.count() == before


@pytest.mark.usefixtures("secrets")
def test_apply__changed__is_in_the_audit_log_as_the_commands(tmp_path: Path) -> None:
    applied(project("teams:", "  search: {rate_limit_rpm: 5}"), tmp_path)
    applied(project("teams:", "  search: {rate_limit_rpm: 6}"), tmp_path)

    entry = AuditEntry.objects.latest("pk")
    assert (entry.actor_kind, entry.actor_name, entry.via, entry.object_kind) == ("command", "apply", "command", "team")
    assert entry.changes == {"rate_limit_rpm": [5, 6]}


def test_apply__many_changes__each_is_in_the_audit_log(tmp_path: Path) -> None:
    applied(project("teams:", *(f"  team-{number}:" for number in range(120))), tmp_path)
    assert AuditEntry.objects.filter(object_kind="team").count() == 120


def test_apply__plan__shows_each_field_and_changes_nothing(tmp_path: Path) -> None:
    applied(project("teams:", "  search: {rate_limit_rpm: 5}"), tmp_path)
    file = tmp_path / "gateway.yaml"
    file.write_text(project("teams:", "  search: {rate_limit_rpm: 6}", "  sales:", "settings: {log_content: false}"))

    assert output("apply", str(file), "--plan").splitlines() == [
        "project shop",
        "  ~ settings",
        "      log_content: true -> false",
        "  ~ teams.search",
        "      rate_limit_rpm: 5 -> 6",
        "  + teams.sales",
        "1 to create, 2 to change, 0 to delete.",
    ]
    assert list(Team.objects.values_list("name", "rate_limit_rpm")) == [("search", 5)]
    assert not GatewaySettings.objects.filter(values__has_key="log_content").exists()
    with pytest.raises(SystemExit) as ended:
        output("apply", str(file), "--check")
    assert ended.value.code == 2


def test_apply__without_a_terminal_and_without_yes__changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(project("teams: {search: }"))
    with pytest.raises(CommandError, match=r"Nothing was changed\. .*--yes"):
        output("apply", str(file))
    assert not Project.objects.exists()


def test_apply__standard_input__is_read_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(project("teams: {search: }").encode())))
    output("apply", "-", "--yes")
    assert Team.objects.get().name == "search"

    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(project("teams: {search: 1}").encode())))
    with pytest.raises(CommandError, match=r"standard input:5: projects\.shop\.teams\.search: Must be an object\."):
        output("apply", "-", "--yes")


@pytest.mark.parametrize("answer", ["", "y", "no"])
def test_apply__any_answer_but_yes__changes_nothing(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(project("teams: {search: }"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: answer)
    with pytest.raises(CommandError, match=r"Nothing was changed\."):
        output("apply", str(file))
    assert not Project.objects.exists()


def test_apply__left_out_of_an_entry__is_the_default(tmp_path: Path) -> None:
    applied(project("settings: {retry_max_attempts: 5, cache_ttl_seconds: 60}"), tmp_path)
    applied(project("settings: {retry_max_attempts: 5}"), tmp_path)
    assert project_settings(Project.objects.get().pk).cache_ttl_seconds == 0


def test_apply__section_left_out__stays(tmp_path: Path) -> None:
    applied(project("settings: {retry_max_attempts: 5}", "teams: {search: }"), tmp_path)
    assert "No changes" in applied(project("end_users: {}"), tmp_path, "--prune")
    assert Team.objects.count() == 1


def test_apply__entry_left_out__stays_without_prune(tmp_path: Path) -> None:
    applied(project("teams: {search: , sales: }"), tmp_path)
    assert "1 that the file does not name stay" in applied(project("teams: {search: }"), tmp_path)
    assert Team.objects.count() == 2

    assert "- teams.sales" in applied(project("teams: {search: }"), tmp_path, "--prune")
    assert Team.objects.get().name == "search"


def test_apply__settings_without_a_value__all_are_the_defaults_and_none_is_created_or_deleted(tmp_path: Path) -> None:
    applied(project("settings: {retry_max_attempts: 5}"), tmp_path)
    printed = applied(project("settings:"), tmp_path, "--prune")
    assert "~ settings" in printed and "- settings" not in printed and "+ settings" not in printed
    assert project_settings(Project.objects.get().pk) == ProjectSettings()


def test_apply__prune__deletes_what_needs_another_first(tmp_path: Path) -> None:
    text = project(
        "prompts:",
        "  a: {versions: [{system_prompt: Be kind.}]}",
        "  b: {versions: [{messages: [{prompt: a}]}]}",
        "  c: {versions: [{messages: [{prompt: b}]}]}",
    )
    applied(text, tmp_path)
    applied(project("prompts:"), tmp_path, "--prune")
    assert not PromptConfig.objects.exists()


def test_apply__new_key__its_secret_goes_to_a_file_of_ones_own(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    text = project("api_keys: {ci: {scopes: [gateway]}}")

    assert "FILE:5: projects.shop.api_keys.ci.secret: The key is new" in refusal(text, tmp_path)
    printed = applied(text, tmp_path, "--new-keys", str(keys))

    made = json.loads(keys.read_text())["shop"]["ci"]
    assert find_key(hash_key(made)) is not None
    assert made not in printed
    assert keys.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match=r"keys\.json cannot be written: File exists"):
        applied(project("api_keys: {cd: {scopes: [gateway]}}"), tmp_path, "--new-keys", str(keys))
    assert ApiKey.objects.count() == 1


def test_apply__nothing_made__no_file_of_keys_is_left(tmp_path: Path) -> None:
    applied(project("teams: {search: }"), tmp_path, "--new-keys", str(tmp_path / "keys.json"))
    assert not (tmp_path / "keys.json").exists()


def test_apply__first_project__has_the_integrations_of_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    applied(project("integrations: {groq: {api_key: {env: OPENAI_API_KEY}}}"), tmp_path)
    assert [row.name for row in ProviderIntegration.objects.all()] == ["groq"]


def test_apply__secret_of_a_key_changes__the_former_one_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = project("api_keys: {ci: {scopes: [gateway], secret: {env: CI_KEY}}}")
    monkeypatch.setenv("CI_KEY", "first-secret-of-the-build")
    applied(text, tmp_path)
    monkeypatch.setenv("CI_KEY", "other-secret-of-the-build")

    assert "secret: (stored) -> (the variable CI_KEY)" in applied(text, tmp_path)

    assert find_key(hash_key("first-secret-of-the-build")) is None
    assert find_key(hash_key("other-secret-of-the-build")) is not None


@tabled
def test_apply__secret_of_a_key_that_it_cannot_have__is_refused(
    secret: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "the-secret-of-another-key")
    applied(project("api_keys: {other: {scopes: [gateway], secret: {env: OTHER_KEY}}}"), tmp_path)
    monkeypatch.setenv("CI_KEY", secret)

    refused = refusal(project("api_keys: {ci: {scopes: [gateway], secret: {env: CI_KEY}}}"), tmp_path)

    assert refused.startswith(f"FILE:5: projects.shop.api_keys.ci.secret: {problem}")
    assert secret not in refused


def test_apply__scopes_of_a_key__do_not_change(tmp_path: Path) -> None:
    applied(project("api_keys: {ci: {scopes: [gateway]}}"), tmp_path, "--new-keys", str(tmp_path / "keys.json"))
    refused = refusal(project("api_keys: {ci: {scopes: [manage]}}"), tmp_path)
    assert "projects.shop.api_keys.ci.scopes: Stays ['gateway']" in refused


def test_apply__several_missing_secrets__all_at_once(tmp_path: Path) -> None:
    text = project("integrations:", "  openai: {api_key: {env: NO_A}}", "  groq: {api_key: {file: /no/b}}")
    assert [line.partition(": Is")[0] for line in refusal(text, tmp_path).splitlines()] == [
        "FILE:6: projects.shop.integrations.openai.api_key",
        "FILE:7: projects.shop.integrations.groq.api_key",
        "Nothing was changed.",
    ]


def test_apply__secret_from_a_file__without_its_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-from-a-file\n")
    applied(project(f"integrations: {{openai: {{api_key: {{file: {tmp_path}/key}}}}}}"), tmp_path)
    assert credentials_of(ProviderIntegration.objects.get()).secret == "sk-from-a-file"


def test_apply__variable_is_gone__what_is_stored_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = project("integrations:", "  openai:", "    api_key: {env: OPENAI_KEY}")
    refused = refusal(text, tmp_path)
    assert refused.startswith(
        "FILE:7: projects.shop.integrations.openai.api_key: Is needed, and the variable OPENAI_KEY"
    )
    monkeypatch.setenv("OPENAI_KEY", "sk-1234567890")
    applied(text, tmp_path)
    monkeypatch.delenv("OPENAI_KEY")

    assert "No changes" in applied(text, tmp_path)
    applied(text + "        weight: 3\n", tmp_path)

    row = ProviderIntegration.objects.get()
    assert (row.weight, credentials_of(row).secret) == (3, "sk-1234567890")


def test_apply__stored_secret__goes_to_no_other_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = project("integrations:", "  vllm:", "    api_key: {env: VLLM_KEY}", "    base_url: https://one.example.com")
    monkeypatch.setenv("VLLM_KEY", "sk-1234567890")
    applied(text, tmp_path)
    monkeypatch.delenv("VLLM_KEY")

    refused = refusal(text.replace("one.example", "two.example"), tmp_path)

    assert "projects.shop.integrations.vllm.base_url: the stored credential was entered for another host" in refused
    assert ProviderIntegration.objects.get().base_url == "https://one.example.com"


def test_apply__channel_with_a_kept_address__changes_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = project("alert_channels:", "  a:", "    kind: slack", "    url: {env: SLACK}")
    monkeypatch.setenv("SLACK", "https://chat.example.com/services/T0")
    applied(text, tmp_path)
    monkeypatch.delenv("SLACK")
    applied(text + "        receives_project_alerts: true\n", tmp_path)
    assert AlertChannel.objects.get().receives_project_alerts


def test_apply__version_of_a_prompt__is_added_behind_those_that_are_there(tmp_path: Path) -> None:
    versions = ["prompts:", "  p:", "    versions:", "      - system_prompt: One."]
    applied(project(*versions), tmp_path)
    printed = applied(project(*versions, "      - system_prompt: Two.", "    labels: {production: 2}"), tmp_path)
    assert "versions: version 2 added" in printed
    assert "labels.production: none -> {version: 2, protected: false}" in printed
    row = PromptConfig.objects.get()
    assert row.active_version is not None
    assert (row.active_version.number, row.last_version_number) == (1, 2)

    # The file may have the latest versions alone, and a label goes with the line that had it.
    short = [*versions[:3], "      - {number: 2, system_prompt: Two.}", "    active_version: 2", "    labels: {}"]
    applied(project(*short), tmp_path)
    row.refresh_from_db()
    assert row.active_version.number == 2
    assert (row.last_version_number, row.labels.count()) == (2, 0)


def test_apply__changed_by_somebody_between_plan_and_yes__is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(project("teams: {search: {rate_limit_rpm: 1}}"), tmp_path)
    file = tmp_path / "gateway.yaml"
    file.write_text(project("teams: {search: {rate_limit_rpm: 2}}"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    def changed(_: str) -> str:
        Team.objects.update(rate_limit_rpm=3)
        return "yes"

    monkeypatch.setattr("builtins.input", changed)
    with pytest.raises(CommandError, match="The project shop was changed meanwhile"):
        output("apply", str(file))
    assert Team.objects.get().rate_limit_rpm == 3


def test_apply__second_project_changed_meanwhile__leaves_the_first_and_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = project("api_keys: {ci: {scopes: [gateway]}}") + "  other:\n    teams: {search: {rate_limit_rpm: 1}}\n"
    file, keys = tmp_path / "gateway.yaml", tmp_path / "keys.json"
    file.write_text(text)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    def made_by_somebody(_: str) -> str:
        Project.objects.create(name="other")
        return "yes"

    monkeypatch.setattr("builtins.input", made_by_somebody)
    with pytest.raises(CommandError) as raised:
        output("apply", str(file), "--new-keys", str(keys))
    assert str(raised.value) == (
        "The project other was changed meanwhile: look at a new plan first.\nNothing was changed."
    )
    assert [one.name for one in Project.objects.all()] == ["other"]
    assert not ApiKey.objects.exists()
    assert not AuditEntry.objects.exists()
    assert not keys.exists()


def test_apply__keys_cannot_be_written__makes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file, keys = tmp_path / "gateway.yaml", tmp_path / "keys.json"
    file.write_text(project("api_keys: {ci: {scopes: [gateway]}}"))
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CommandError, match=r"No space left on device. Nothing was changed\."):
        output("apply", str(file), "--yes", "--new-keys", str(keys))
    assert not ApiKey.objects.exists()
    assert not keys.exists()


def test_apply__name_that_a_terminal_would_obey__is_shown_escaped(tmp_path: Path) -> None:
    printed = applied(project(r'teams: {"a\e[2J": {rate_limit_rpm: 1}}'), tmp_path)
    assert r"+ teams.a\x1b[2J" in printed
    refused = refusal(project(r'teams: {"b\e[2J": {rate_limit_rpm: 0}}'), tmp_path)
    assert r"teams.b\x1b[2J.rate_limit_rpm" in refused


def test_apply__one_project_of_two_is_wrong__neither_is_changed(tmp_path: Path) -> None:
    text = project("teams: {search: }") + "  other:\n    teams: {search: {rate_limit_rpm: none}}\n"
    assert "FILE:7: projects.other.teams.search.rate_limit_rpm: Must be a whole number." in refusal(text, tmp_path)
    assert not Project.objects.exists()


_PAGE = (service_settings.BASE_DIR / "docs" / "configuration-files.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)


@pytest.mark.parametrize(("option", "code"), [("--plan", 0), ("--dry-run", 0), ("--check", 2)])
def test_apply__first_example_of_the_docs__is_shown_without_a_place_for_new_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str, code: int
) -> None:
    assert EXAMPLE is not None
    file = tmp_path / "gateway.yaml"
    file.write_text(EXAMPLE[1].replace("/run/secrets/azure-eu", str(tmp_path / "azure-eu")), encoding="utf-8")
    (tmp_path / "azure-eu").write_text("secret-of-azure", encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-openai")

    try:
        call_command("apply", str(file), option)
        ended = 0
    except SystemExit as end:
        ended = int(end.code or 0)

    printed = capsys.readouterr().out
    assert ended == code
    assert "  + api_keys.ci\n" in printed
    assert "      secret: (a new secret, written to --new-keys)\n" in printed
    assert not Project.objects.filter(name="shop").exists()
    # Only what is done needs a place for them.
    with pytest.raises(CommandError, match="have one made by --new-keys FILE"):
        output("apply", str(file), "--yes")
