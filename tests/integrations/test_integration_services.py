from __future__ import annotations

import logging

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
    save_integration,
    update_integration,
)
from tests.factories.core import make_project

pytestmark = pytest.mark.django_db

KEY = "sk-secret-0123456789"


@pytest.fixture
def project() -> Project:
    return make_project()


def add(project: Project, provider: str = "openai", **change: object) -> ProviderIntegration:
    fields: dict[str, object] = {"secret": KEY, **change}
    return add_integration(project_id=project.pk, provider=provider, change=IntegrationChange(**fields))  # type: ignore[arg-type] # fields of a dataclass by name


def test_add_integration__key__encrypted_and_read_back(project: Project) -> None:
    row = add(project, options={"api_version": "v"}, secret_extra={"access_key_id": "AK"})
    stored = ProviderIntegration.objects.filter(pk=row.pk).values().get()
    assert not any(KEY in str(value) for value in stored.values())
    (access,) = enabled_credentials(project.pk)
    assert (access.provider, access.secret, access.integration_id) == ("openai", KEY, row.pk)
    assert access.extra == {"api_version": "v", "access_key_id": "AK"}
    assert KEY not in repr(access)


def test_add_integration__twice__conflict(project: Project) -> None:
    add(project)
    with pytest.raises(IntegrationExistsError):
        add(project)
    add(make_project())


def test_add_integration__unknown_provider__refused(project: Project) -> None:
    with pytest.raises(UnknownProviderError):
        add(project, "nobody")


@pytest.mark.parametrize(
    ("provider", "change", "named"),
    [
        ("openai", {"secret": None}, "api_key"),
        ("openai", {"secret": ""}, "api_key"),
        ("openai", {"secret": "a\r\nx-evil: 1"}, "api_key"),
        ("openai", {"secret": "schlüssel"}, "api_key"),
        ("openai", {"base_url": "nonsense"}, "base_url"),
        ("azure_openai", {}, "base_url"),
        ("vllm", {}, "base_url"),
    ],
)
def test_add_integration__incomplete_or_unsafe__refused_by_field(
    project: Project, provider: str, change: dict[str, object], named: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        add(project, provider, **change)
    assert caught.value.details is not None
    assert list(caught.value.details) == [named]
    assert not ProviderIntegration.objects.exists()


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
    update_integration(project_id=project.pk, provider="openai", change=change)
    assert enabled_credentials(project.pk)[0].secret == KEY


def test_update_integration__new_key_and_off__rotated_and_disabled(project: Project) -> None:
    add(project)
    update_integration(project_id=project.pk, provider="openai", change=IntegrationChange(enabled=False))
    assert enabled_credentials(project.pk) == []
    change = IntegrationChange(secret="sk-other-9876543210", enabled=True)
    row = update_integration(project_id=project.pk, provider="openai", change=change)
    assert row.secret_tail == "3210"
    assert enabled_credentials(project.pk)[0].secret == "sk-other-9876543210"


def test_update_and_remove__another_projects__not_found(project: Project) -> None:
    add(project)
    other = make_project().pk
    with pytest.raises(IntegrationNotFoundError):
        update_integration(project_id=other, provider="openai", change=IntegrationChange())
    with pytest.raises(IntegrationNotFoundError):
        remove_integration(project_id=other, provider="openai")
    remove_integration(project_id=project.pk, provider="openai")
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
