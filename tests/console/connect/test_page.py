from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analytics.request_log.record import Outcome
from core.keys.services import find_key, hash_key
from core.models import ApiKey, AuditEntry, Project
from core.roles import Role
from integrations.access.credentials import store_secret
from integrations.models import ProviderIntegration
from tests.console.conftest import sent, shown, signed_in, text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project
from tests.factories.settings import make_settings
from tests.store_away import store_away
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/connect/"


def add_provider(project: Project, provider: str, **values: Any) -> None:
    row = ProviderIntegration(project=project, provider=provider, **values)
    store_secret(row, "sk-nobody")
    row.save()


def log(project: Project, folder: Path, **values: Any) -> str:
    entry = make_entry(project_id=str(project.pk), **values)
    store(folder, entry)
    return str(entry.record.request_id)


def states(text: str) -> list[str]:
    [steps] = re.findall(r'<ol class="connect-steps".*?</ol>', text, re.DOTALL)
    return re.findall(r'class="badge \w+">([^<]+)<', steps)


def test_steps__nothing_yet__all_to_do_with_their_links(administrator: Client, project: Project) -> None:
    text = shown(administrator, project, PATH)

    assert states(text) == ["to do", "to do", "to do"]
    assert "/admin/keys/providers/" in text
    assert "Waiting for the first request" in text
    assert "No provider can answer yet" in text


def test_steps__everything_there__done_and_the_request_is_linked(
    administrator: Client, project: Project, tmp_path: Path
) -> None:
    add_provider(project, "anthropic")
    make_key(project, name="shop", scopes=["gateway"])
    request_id = log(project, tmp_path)

    text = shown(administrator, project, PATH, panel="steps")

    assert states(text) == ["done", "done", "done"]
    assert "There is one for Anthropic." in text
    assert "data-done" in text
    assert f"/admin/analytics/requests/{project.pk}/{request_id}" in text


def test_steps__requests_of_the_playground__are_not_the_applications(
    administrator: Client, project: Project, tmp_path: Path
) -> None:
    log(project, tmp_path, source="playground")

    assert "Waiting for the first request" in shown(administrator, project, PATH, panel="steps")


def test_steps__request_that_failed__says_why_and_goes_on_waiting(
    administrator: Client, project: Project, tmp_path: Path
) -> None:
    log(project, tmp_path, outcome=Outcome.ERROR, status_code=404, error_code="model_not_found")

    text = shown(administrator, project, PATH, panel="steps")

    assert states(text)[2] == "failed"
    assert "model_not_found" in text
    assert "data-done" not in text


def test_steps__of_one_key__wait_for_a_request_of_that_key(
    administrator: Client, project: Project, tmp_path: Path
) -> None:
    (new, _), (other, _) = make_key(project, name="new"), make_key(project, name="other")
    log(project, tmp_path / "other", api_key_id=other.pk)
    assert states(shown(administrator, project, PATH, panel="steps", key=new.pk))[2] == "to do"

    log(project, tmp_path / "new", api_key_id=new.pk)
    assert states(shown(administrator, project, PATH, panel="steps", key=new.pk))[2] == "done"


@pytest.mark.parametrize("named", ["of another project", "shop", "9" * 30, "²"])
def test_steps__key_that_is_not_there__404(administrator: Client, project: Project, named: str) -> None:
    key = make_key(make_project())[0].pk if named == "of another project" else named

    answer = administrator.get(PATH, {"project": str(project.pk), "panel": "steps", "key": key})

    assert answer.status_code == 404


@pytest.mark.parametrize("values", [{"scopes": ["metrics:read"]}, {"is_revoked": True}])
def test_steps__keys_that_call_nothing__do_not_count(
    administrator: Client, project: Project, values: dict[str, Any]
) -> None:
    row, _ = make_key(project, scopes=values.get("scopes", ["gateway"]))
    if "is_revoked" in values:
        row.revoked_at = row.created_at
        row.save()

    assert states(shown(administrator, project, PATH))[1] == "to do"


def test_steps__store_away__said_and_the_others_are_there(administrator: Client, project: Project) -> None:
    make_key(project, name="shop", scopes=["gateway"])

    with store_away():
        text = shown(administrator, project, PATH, panel="steps")

    assert states(text) == ["to do", "done", "to do"]
    assert "The analytics store does not answer" in text


def test_make__key__is_in_every_snippet_of_this_answer_alone(administrator: Client, project: Project) -> None:
    answer = sent(administrator, project, PATH, name="shop")

    text = text_of(answer)
    found = re.findall(r"svc_[\w-]{43}", text)
    assert len(set(found)) == 1
    # The key itself, curl, three programs, two agents, and three variables of the environment.
    assert len(found) == 10
    row = ApiKey.objects.get()
    assert (row.name, row.scopes) == ("shop", ["gateway"])
    assert find_key(hash_key(found[0])) is not None
    assert "no-store" in answer.headers["Cache-Control"]
    assert f"panel=steps&key={row.pk}" in text
    assert found[0] not in shown(administrator, project, PATH)
    assert not AuditEntry.objects.filter(changes__icontains=found[0]).exists()


@pytest.mark.parametrize("name", ["", " ", "n" * 101])
def test_make__bad_name__said_at_the_field_and_nothing_made(administrator: Client, project: Project, name: str) -> None:
    text = text_of(sent(administrator, project, PATH, name=name))

    assert "errorlist" in text
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMINISTRATOR])
def test_page__who_may_not_make_keys__sees_what_to_ask_for(project: Project, role: Role) -> None:
    person = signed_in(project, role)

    text = shown(person, project, PATH)

    assert f"Please make an API key with the scope gateway for my application, in the project {project.name}" in text
    assert "Ask an administrator of the project to add a provider key" in text
    assert "Make an application key" not in text
    assert 'os.environ["KEY"]' in text
    assert sent(person, project, PATH, name="shop").status_code == 403
    assert not ApiKey.objects.exists()


def test_snippets__address__is_that_of_the_browser(administrator: Client, project: Project, settings: Any) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    headers = {"host": "llm.example.com", "x-forwarded-proto": "https"}

    text = text_of(administrator.get(PATH, {"project": str(project.pk)}, headers=headers))

    assert "curl https://llm.example.com/api/gateway/v1/chat/completions" in text
    assert "ANTHROPIC_BASE_URL=https://llm.example.com/api/gateway\n" in text


@tabled
def test_snippets__model__is_one_of_an_enabled_provider(
    administrator: Client, project: Project, providers: list[str], preferred: list[str], model: str
) -> None:
    for provider in providers:
        add_provider(project, provider)
    make_settings(project, preferred_models=preferred)

    assert f'model="{model}",' in shown(administrator, project, PATH)


def test_snippets__chosen_model__is_kept_when_a_key_is_made(administrator: Client, project: Project) -> None:
    add_provider(project, "anthropic")
    text = shown(administrator, project, PATH, model="claude-opus-5")
    assert 'model="claude-opus-5",' in text
    assert '<input type="hidden" name="model" value="claude-opus-5">' in text

    assert 'model="claude-opus-5",' in text_of(sent(administrator, project, PATH, name="shop", model="claude-opus-5"))


@pytest.mark.parametrize("model", ["gpt-5.5", "auto", "<script>alert(1)</script>", "x" * 5000])
def test_snippets__model_that_nobody_serves__said_and_another_stands_there(
    administrator: Client, project: Project, model: str
) -> None:
    add_provider(project, "anthropic")

    text = text_of_raw(administrator.get(PATH, {"project": str(project.pk), "model": model}))

    assert 'role="alert"' in text
    assert "anthropic/claude-sonnet-5" in text
    assert "<script>alert" not in text


def text_of_raw(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode()


def test_home__without_a_request__shows_the_box_until_there_is_one(
    administrator: Client, project: Project, tmp_path: Path
) -> None:
    assert states(shown(administrator, project, "/admin/")) == ["to do", "to do", "to do"]

    log(project, tmp_path)

    assert "connect-steps" not in shown(administrator, project, "/admin/")


def test_api_key__just_made__has_the_box_with_the_secret_and_a_model_that_it_may_call(
    administrator: Client, project: Project
) -> None:
    add_provider(project, "anthropic")
    add_provider(project, "mistral")
    given = {"action": "make", "name": "shop", "scopes": ["gateway"], "allowed_providers": "mistral"}

    text = text_of(sent(administrator, project, "/admin/keys/api/", **given))

    [key] = set(re.findall(r"svc_[\w-]{43}", text))
    assert f'api_key="{key}"' in text
    assert 'model="mistral/mistral-small-latest",' in text
    assert states(text) == ["done", "done", "to do"]


def test_api_key__that_calls_no_model__has_no_box(administrator: Client, project: Project) -> None:
    given = {"action": "make", "name": "board", "scopes": ["metrics:read"]}

    assert "connect-steps" not in text_of(sent(administrator, project, "/admin/keys/api/", **given))


@tabled
def test_page__model_that_refuses_tools_in_chat__names_the_setting(
    administrator: Client, project: Project, model: str, values: dict[str, Any], is_named: bool
) -> None:
    add_provider(project, "openai", enabled=True)
    make_settings(project, **values)

    text = shown(administrator, project, PATH, model=model)

    assert ("openai_responses_for_tools" in text) is is_named
