from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from core.models import AuditEntry, Project
from integrations.access.credentials import credentials_of
from integrations.models import ProviderIntegration
from tests.console.conftest import shown, text_of
from tests.fakes.cheap_calls import cheap_call
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

LIST, ONE = "/admin/keys/providers/", "/admin/keys/provider/"
GOOD = FAKES["openai"].credentials("").secret
BAD = "sk-canary-that-nobody-knows-91ac"


@pytest.fixture(scope="module")
def upstream() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


@pytest.fixture
def base_url(upstream: DialectServer, settings: Settings) -> str:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    upstream.play("openai", cheap_call("openai"))
    return FAKES["openai"].credentials(upstream.base_url("openai")).base_url


def _sent(client: Client, project: Project, provider: str, **values: str) -> Any:
    return client.post(f"{ONE}?project={project.pk}&provider={provider}", values)


def test_add__test_and_save__saved_with_the_outcome(administrator: Client, project: Project, base_url: str) -> None:
    answer = _sent(administrator, project, "openai", api_key=GOOD, base_url=base_url, action="test_save")

    assert answer.status_code == 302
    row = ProviderIntegration.objects.get()
    assert (credentials_of(row).secret, row.last_test_ok) == (GOOD, True)
    text = shown(administrator, project, LIST)
    assert f"****{GOOD[-4:]}" in text
    assert '">ok</span>' in text
    assert GOOD not in text


def test_add__provider_refuses_the_key__not_saved_and_the_rest_is_kept(
    administrator: Client, project: Project, base_url: str
) -> None:
    text = text_of(_sent(administrator, project, "openai", api_key=BAD, base_url=base_url, action="test_save"))

    assert "Not saved:" in text
    assert base_url in text
    assert BAD not in text
    assert not ProviderIntegration.objects.exists()


def test_rotate__new_key__forgets_the_old_test_and_the_key_is_new(
    administrator: Client, project: Project, base_url: str
) -> None:
    _sent(administrator, project, "openai", api_key=GOOD, base_url=base_url, action="test_save")

    answer = _sent(administrator, project, "openai", api_key=BAD, base_url=base_url, action="save")

    assert answer.status_code == 302
    row = ProviderIntegration.objects.get()
    assert (credentials_of(row).secret, row.last_tested_at) == (BAD, None)
    assert "not tested" in shown(administrator, project, ONE, provider="openai")
    [rotated, added] = AuditEntry.objects.filter(object_kind="provider key")
    assert rotated.changes["encrypted_secret"] == ["set", "set anew"]
    assert added.action == "created"


def test_save__empty_key__keeps_the_stored_one(administrator: Client, project: Project, base_url: str) -> None:
    _sent(administrator, project, "openai", api_key=GOOD, base_url=base_url, action="save")

    _sent(administrator, project, "openai", api_key="", base_url=base_url, action="save")

    assert credentials_of(ProviderIntegration.objects.get()).secret == GOOD


def test_additions__parameters_and_headers__stored_masked_and_kept(administrator: Client, project: Project) -> None:
    fields = {"api_key": GOOD, "default_parameters": '{"temperature": 0.2}', "forced_parameters": '{"user": null}'}
    fields |= {"extra_headers": '{"x-team": "of-canaries"}', "forward_headers": "openai-beta", "own_account": "on"}
    assert _sent(administrator, project, "openai", **fields, action="save").status_code == 302

    text = shown(administrator, project, ONE, name="openai")
    assert '{"x-team": "****"}' in text
    assert "of-canaries" not in text
    again = {**fields, "api_key": "", "default_parameters": "", "extra_headers": '{"x-team": "****"}'}
    assert _sent(administrator, project, "openai", **again, action="save").status_code == 302
    found = credentials_of(ProviderIntegration.objects.get())
    assert (found.default_parameters, found.forced_parameters) == ({}, {"user": None})
    assert (found.extra_headers, found.forward_headers) == ({"x-team": "of-canaries"}, ("openai-beta",))
    assert found.own_account
    assert _sent(administrator, project, "openai", **again | {"forward_headers": "-"}, action="save").status_code == 302
    assert ProviderIntegration.objects.get().forward_headers == []


@tabled
def test_additions__wrong__said_and_nothing_saved(
    administrator: Client, project: Project, values: dict[str, str], problem: str
) -> None:
    text = text_of(_sent(administrator, project, "openai", api_key=GOOD, **values, action="save"))

    assert problem in text
    assert not ProviderIntegration.objects.exists()


def test_actions__of_a_stored_key__test_disable_enable_remove(
    administrator: Client, project: Project, base_url: str
) -> None:
    _sent(administrator, project, "openai", api_key=GOOD, base_url=base_url, action="save")
    rows = ProviderIntegration.objects

    _sent(administrator, project, "openai", action="test")
    assert rows.get().last_test_ok is True
    _sent(administrator, project, "openai", action="disable")
    assert rows.get().enabled is False
    _sent(administrator, project, "openai", action="enable")
    assert rows.get().enabled is True
    assert _sent(administrator, project, "openai", action="remove").status_code == 302
    assert not rows.exists()


@tabled
def test_form__of_a_provider__its_fields_and_no_others(
    administrator: Client, project: Project, provider: str, fields: list[str], others: list[str]
) -> None:
    text = shown(administrator, project, ONE, provider=provider)

    assert all(f'name="{name}"' in text for name in fields)
    assert not any(f'name="{name}"' in text for name in others)


def test_save__missing_field__named_at_the_field(administrator: Client, project: Project) -> None:
    text = text_of(_sent(administrator, project, "bedrock", access_key_id="AKIA", region="eu-west-1", action="save"))

    assert "secret_access_key" in text
    assert 'class="errorlist"' in text
    assert 'value="eu-west-1"' in text


@pytest.mark.parametrize("typed", ["openai", "OpenAI", " amazon BEDROCK"])
def test_page__provider_by_its_name__its_fields(administrator: Client, project: Project, typed: str) -> None:
    answer = administrator.get(ONE, {"project": str(project.pk), "provider": typed})

    assert "Test and save" in answer.getvalue().decode()


def test_page__unknown_provider__says_so_on_the_list(administrator: Client, project: Project) -> None:
    answer = administrator.get(ONE, {"project": str(project.pk), "provider": "nobody"}, follow=True)

    assert "There is no provider called nobody." in answer.getvalue().decode()


def test_pages__none_stored__404(administrator: Client, project: Project) -> None:
    assert _sent(administrator, project, "openai", action="remove").status_code == 404
