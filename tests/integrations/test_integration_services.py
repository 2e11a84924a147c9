from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from core.errors import ValidationError
from core.models import Project
from integrations.environment import import_from_environment
from integrations.errors import IntegrationExistsError, IntegrationNotFoundError, UnknownProviderError
from integrations.models import ProviderIntegration
from integrations.selectors import enabled_credentials
from integrations.services import (
    IntegrationChange,
    add_integration,
    remove_integration,
    update_integration,
)
from tests.factories.core import make_project
from tests.integrations.saved import save_integration
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

KEY = "sk-secret-0123456789"


def add(project: Project, provider: str = "openai", **change: object) -> ProviderIntegration:
    fields: dict[str, object] = {"secret": KEY, **change}
    return add_integration(project_id=project.pk, provider=provider, change=IntegrationChange(**fields))  # type: ignore[arg-type] # fields of a dataclass by name


def test_add_integration__key__encrypted_and_read_back(project: Project) -> None:
    row = add(project, "bedrock", options={"region": "eu-west-1"}, secret_extra={"access_key_id": "AK"})
    stored = ProviderIntegration.objects.filter(pk=row.pk).values().get()
    assert not any(KEY in str(value) for value in stored.values())
    (access,) = enabled_credentials(project.pk)
    assert (access.provider, access.secret, access.integration_id) == ("bedrock", KEY, row.pk)
    assert access.extra == {"region": "eu-west-1", "access_key_id": "AK"}
    assert KEY not in repr(access)


def test_add_integration__twice__conflict(project: Project) -> None:
    add(project)
    with pytest.raises(IntegrationExistsError):
        add(project)
    add(make_project())


def test_add_integration__unknown_provider__refused(project: Project) -> None:
    with pytest.raises(UnknownProviderError):
        add(project, "nobody")


@tabled
def test_add_integration__incomplete_or_unsafe__refused_by_field(
    project: Project, provider: str, change: dict[str, object], named: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        add(project, provider, **change)
    assert caught.value.details is not None
    assert list(caught.value.details) == [named]
    assert not ProviderIntegration.objects.exists()


ACCESS_KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}


def service_account(**changes: object) -> str:
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n",
        "client_email": "gateway@my-project.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
        **changes,
    }
    return json.dumps({name: value for name, value in account.items() if value is not None}, indent=2)


@tabled
def test_add_integration__bedrock_incomplete__refused_by_field(
    project: Project, change: dict[str, object], named: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        add(project, "bedrock", **change)
    assert list(caught.value.details or ()) == [named]


def test_add_integration__bedrock__by_access_keys_or_api_key(project: Project) -> None:
    row = add(project, "bedrock", secret=None, secret_extra=ACCESS_KEYS, options={"region": "eu-west-1"})
    stored = ProviderIntegration.objects.filter(pk=row.pk).values().get()
    assert not any(secret in str(value) for secret in ACCESS_KEYS.values() for value in stored.values())
    (access,) = enabled_credentials(project.pk)
    assert access.extra == {**ACCESS_KEYS, "region": "eu-west-1"}
    change = IntegrationChange(secret=KEY, secret_extra=dict.fromkeys(ACCESS_KEYS, ""))
    update_integration(project_id=project.pk, name="bedrock", change=change)
    (access,) = enabled_credentials(project.pk)
    assert (access.secret, access.extra) == (KEY, {"region": "eu-west-1"})


def test_update_integration__bedrock_masked_keys__stored_ones_kept(project: Project) -> None:
    keys = {**ACCESS_KEYS, "session_token": "token/=="}
    add(project, "bedrock", secret=None, secret_extra=keys, options={"region": "eu-west-1"})
    change = IntegrationChange(secret="****", secret_extra=dict.fromkeys(keys, "****"), enabled=True)
    update_integration(project_id=project.pk, name="bedrock", change=change)
    assert enabled_credentials(project.pk)[0].extra == {**keys, "region": "eu-west-1"}
    rotated = IntegrationChange(secret_extra={"secret_access_key": "new-secret"})
    update_integration(project_id=project.pk, name="bedrock", change=rotated)
    assert enabled_credentials(project.pk)[0].extra["secret_access_key"] == "new-secret"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"secret": None}, "api_key"),
        ({"secret": service_account(project_id=None)}, "project"),
        ({"secret": service_account(client_email=None)}, "api_key"),
        ({"secret": service_account(private_key=7)}, "api_key"),
        ({"secret": service_account(token_uri=None)}, "api_key"),
        ({"secret": service_account(token_uri="http://oauth2.googleapis.com/token")}, "api_key"),
        ({"secret": service_account(token_uri="https://169.254.169.254/token")}, "api_key"),
        ({"secret": service_account(token_uri="https://evil.test/oauth2.googleapis.com")}, "api_key"),
        ({"secret": service_account(token_uri="https://x@oauth2.googleapis.com/token")}, "api_key"),
        ({"secret": service_account(token_uri="https://oauth2.googleapis.com:9/token")}, "api_key"),
        ({"secret": service_account(type="external_account")}, "api_key"),
        ({"secret": '{"type": '}, "api_key"),
        ({"secret": service_account(private_key="x" * 20000)}, "api_key"),
        ({"secret": service_account(), "options": {"location": "../x"}}, "location"),
        ({"secret": service_account(), "options": {"project": "a/b"}}, "project"),
        ({"secret": service_account(), "options": {"project": 7}}, "project"),
    ],
)
def test_add_integration__vertex_incomplete_or_unsafe__refused_by_field(
    project: Project, settings: Settings, change: dict[str, object], named: str
) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    with pytest.raises(ValidationError) as caught:
        add(project, "google_vertex", **change)
    assert list(caught.value.details or ()) == [named]


def test_add_integration__vertex_service_account__stored_whole_and_no_tail_shown(project: Project) -> None:
    secret = service_account()
    row = add(project, "google_vertex", secret=secret, options={"location": "europe-west4"})
    assert row.secret_tail == ""
    (access,) = enabled_credentials(project.pk)
    assert json.loads(access.secret) == json.loads(secret)
    assert "\n" not in access.secret
    update_integration(project_id=project.pk, name="google_vertex", change=IntegrationChange(secret="****"))
    assert enabled_credentials(project.pk)[0].secret == access.secret


def test_add_integration__vertex_other_ways__api_key_alone_or_account_with_project(project: Project) -> None:
    add(project, "google_vertex", secret="AIzaSyExample0123456789")
    other = make_project()
    add(other, "google_vertex", secret=service_account(project_id=None), options={"project": "my-project"})
    assert enabled_credentials(other.pk)[0].extra == {"project": "my-project"}


def test_add_integration__vertex_own_token_server__by_setting_or_operator(project: Project, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    change = IntegrationChange(secret=service_account(token_uri="http://127.0.0.1:9/token"))
    save_integration(project_id=project.pk, provider="google_vertex", change=change, trusted=True)
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    add(make_project(), "google_vertex", secret=service_account(token_uri="http://127.0.0.1:9/token"))


def test_add_integration__json_key_for_another_provider__refused(project: Project) -> None:
    with pytest.raises(ValidationError, match="api_key"):
        add(project, "openai", secret=service_account())


def test_add_integration__private_address__by_setting_or_operator(project: Project, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_UPSTREAMS = False
    with pytest.raises(ValidationError, match="private"):
        add(project, base_url="http://127.0.0.1:9/v1")
    change = IntegrationChange(secret=KEY, base_url="http://127.0.0.1:9/v1/")
    row = save_integration(project_id=project.pk, provider="openai", change=change, trusted=True)
    assert row.base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("shown", ["****6789", "****"])
def test_update_integration__masked_key_written_back__stored_key_kept(project: Project, shown: str) -> None:
    add(project)
    change = IntegrationChange(secret=shown, enabled=True)
    update_integration(project_id=project.pk, name="openai", change=change)
    assert enabled_credentials(project.pk)[0].secret == KEY


def test_update_integration__new_key_and_off__rotated_and_disabled(project: Project) -> None:
    add(project)
    update_integration(project_id=project.pk, name="openai", change=IntegrationChange(enabled=False))
    assert enabled_credentials(project.pk) == []
    change = IntegrationChange(secret="sk-other-9876543210", enabled=True)
    row = update_integration(project_id=project.pk, name="openai", change=change)
    assert row.secret_tail == "3210"
    assert enabled_credentials(project.pk)[0].secret == "sk-other-9876543210"


def test_update_and_remove__another_projects__not_found(project: Project) -> None:
    add(project)
    other = make_project().pk
    with pytest.raises(IntegrationNotFoundError):
        update_integration(project_id=other, name="openai", change=IntegrationChange())
    with pytest.raises(IntegrationNotFoundError):
        remove_integration(project_id=other, name="openai")
    remove_integration(project_id=project.pk, name="openai")
    assert enabled_credentials(project.pk) == []


def test_enabled_credentials__key_rotated__old_rows_readable(project: Project, settings: Settings) -> None:
    add(project)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    assert enabled_credentials(project.pk)[0].secret == KEY


def test_enabled_credentials__key_lost__left_out_and_logged(
    project: Project, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    add(project)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with caplog.at_level(logging.ERROR, logger="integrations.credentials"):
        assert enabled_credentials(project.pk) == []
    assert "undecryptable" in caplog.text


def test_update_integration__key_lost__off_or_entered_again(project: Project, settings: Settings) -> None:
    add(project, "bedrock", secret=None, secret_extra=ACCESS_KEYS, options={"region": "eu-west-1"})
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    def update(**change: object) -> None:
        fields = IntegrationChange(**change)  # type: ignore[arg-type] # fields of a dataclass by name
        update_integration(project_id=project.pk, name="bedrock", change=fields)

    with pytest.raises(ValidationError, match="enter it again"):
        update(options={"region": "us-east-1"})
    update(enabled=False)
    update(secret_extra=ACCESS_KEYS, enabled=True)
    assert enabled_credentials(project.pk)[0].extra == {**ACCESS_KEYS, "region": "eu-west-1"}


def test_enabled_credentials__sandbox_running__serves_every_project(
    project: Project, settings: Settings, tmp_path: object
) -> None:
    settings.RUN_DIR, settings.SANDBOX = tmp_path, True
    assert enabled_credentials(project.pk) == []
    (settings.RUN_DIR / "sandbox.url").write_text("http://127.0.0.1:7/v1\n")
    (access,) = enabled_credentials(project.pk)
    assert (access.provider, access.base_url, access.integration_id) == ("sandbox", "http://127.0.0.1:7/v1", 0)
    add(project, "sandbox", secret=None, base_url="http://127.0.0.1:8/v1", enabled=False)
    assert enabled_credentials(project.pk) == []


ENVIRON = {
    "OPENAI_API_KEY": KEY,
    "GROQ_API_KEY": "  ",
    "AZURE_OPENAI_API_KEY": "azure-key-0123456789",
    "AZURE_OPENAI_ENDPOINT": "https://res.openai.azure.com/",
    "OPENAI_API_VERSION": "2025-01-01",
    "OLLAMA_BASE_URL": "http://127.0.0.1:11434/v1",
    "VLLM_API_KEY": "no-address",
}


def test_import_from_environment__keys_set__integrations_added_once(project: Project) -> None:
    assert import_from_environment(project.pk, ENVIRON) == ["openai", "azure_openai", "ollama"]
    assert import_from_environment(project.pk, ENVIRON) == []
    found = {access.provider: access for access in enabled_credentials(project.pk)}
    assert found["openai"].secret == KEY
    assert found["azure_openai"].extra == {"api_version": "2025-01-01"}
    assert found["azure_openai"].base_url == "https://res.openai.azure.com"
    assert found["ollama"].secret == ""


def test_import_from_environment__clouds_and_vendors__all_their_fields(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "account.json"
    file.write_text(service_account())
    environ = {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": "https://proxy.test",
        "GOOGLE_API_KEY": "AIzaSyExample0123456789",
        "GOOGLE_GEMINI_BASE_URL": "https://gemini.test/",
        "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        "GOOGLE_CLOUD_LOCATION": "europe-west4",
        "AWS_ACCESS_KEY_ID": ACCESS_KEYS["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": ACCESS_KEYS["secret_access_key"],
        "AWS_SESSION_TOKEN": "token/==",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "COHERE_API_KEY": KEY,
    }
    providers = ["anthropic", "google", "google_vertex", "bedrock", "cohere"]
    assert import_from_environment(project.pk, environ) == providers
    found = {access.provider: access for access in enabled_credentials(project.pk)}
    assert (found["anthropic"].secret, found["anthropic"].base_url) == (KEY, "https://proxy.test")
    assert found["google"].secret == "AIzaSyExample0123456789"
    assert found["google"].base_url == "https://gemini.test/v1beta"
    assert json.loads(found["google_vertex"].secret) == json.loads(service_account())
    assert found["google_vertex"].extra == {"location": "europe-west4"}
    assert found["bedrock"].extra == {**ACCESS_KEYS, "session_token": "token/==", "region": "eu-west-1"}
    assert found["cohere"].secret == KEY


def test_import_from_environment__bedrock_api_key__and_region(project: Project) -> None:
    environ = {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "eu-west-1"}
    assert import_from_environment(project.pk, environ) == ["bedrock"]
    (access,) = enabled_credentials(project.pk)
    assert (access.secret, access.extra) == (KEY, {"region": "us-east-1"})


@tabled
def test_import_from_environment__incomplete__left_out_and_logged(
    project: Project, caplog: pytest.LogCaptureFixture, environ: dict[str, str]
) -> None:
    with caplog.at_level(logging.WARNING, logger="integrations.environment"):
        assert import_from_environment(project.pk, {**environ, "OPENAI_API_KEY": KEY}) == ["openai"]
    assert [record.name for record in caplog.records] == ["integrations.environment"]


def test_import_from_environment__row_exists__kept(project: Project) -> None:
    add(project, secret="sk-by-hand-0123456")
    import_from_environment(project.pk, {"OPENAI_API_KEY": KEY})
    assert enabled_credentials(project.pk)[0].secret == "sk-by-hand-0123456"


def test_first_project__keys_in_the_environment__imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.services import bootstrap_project

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    first = bootstrap_project(name="first").project_id
    second = bootstrap_project(name="second").project_id
    assert [access.secret for access in enabled_credentials(first)] == [KEY]
    assert enabled_credentials(second) == []


def test_import_from_environment__key_in_a_file__read_from_it(
    project: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "openai").write_text(f"{KEY}\n", encoding="utf-8")
    environ = {"OPENAI_API_KEY_FILE": str(tmp_path / "openai"), "GROQ_API_KEY_FILE": str(tmp_path / "absent")}

    assert import_from_environment(project.pk, environ) == ["openai"]
    (access,) = enabled_credentials(project.pk)
    assert access.secret == KEY
    assert "integration.file_unreadable" in caplog.messages
