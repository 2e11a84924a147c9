from __future__ import annotations

import re
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from core.keys.services import find_key, hash_key, revoke_key
from core.models import ApiKey, AuditEntry, Project
from core.rights.scopes import DESCRIPTIONS
from tests.console.conftest import sent, shown, text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

PATH = "/admin/keys/api/"


def test_list__keys_with_requests__their_number_and_cost_lead_to_requests(
    administrator: Client, project: Project, tmp_path: Path
) -> None:
    row, _ = make_key(project, name="shop")
    make_key(project, name="idle")
    ts = int((time.time() - 60) * 1_000_000)
    values: dict[str, Any] = {"project_id": str(project.pk), "ts": ts, "api_key_id": row.pk, "cost_usd": "1.2500000000"}
    store(tmp_path, *(make_entry(**values) for _ in range(2)))

    text = shown(administrator, project, PATH)

    assert f"api_key_id={row.pk}" in text
    assert '<td data-label="Cost" class="number">$2.50</td>' in text
    assert '<td data-label="Requests" class="number">0</td>' in text


def test_make__key__shown_once_and_works(administrator: Client, project: Project) -> None:
    answer = sent(administrator, project, PATH, action="make", name="shop", scopes=["gateway"])

    # It is also in the texts by which an application is connected.
    [key] = set(re.findall(r"svc_[\w-]{43}", text_of(answer)))
    row = ApiKey.objects.get()
    assert (row.name, row.scopes, key.startswith(row.prefix)) == ("shop", ["gateway"], True)
    assert "no-store" in answer.headers["Cache-Control"]
    assert key not in shown(administrator, project, PATH)


@pytest.mark.parametrize("values", [{"expires_at": "2020-01-01T00:00"}, {"scopes": ["root"]}])
def test_make__bad_value__refused_and_the_name_kept(
    administrator: Client, project: Project, values: dict[str, Any]
) -> None:
    text = text_of(sent(administrator, project, PATH, **{"name": "shop-of-ann", "scopes": ["gateway"], **values}))

    assert "errorlist" in text
    assert "shop-of-ann" in text
    assert not ApiKey.objects.exists()


def test_make__with_limits__stored_and_shown_beside_their_use(
    administrator: Client, project: Project, tmp_path: Path
) -> None:
    given = {"monthly_budget_usd": "20", "total_budget_usd": "100.5", "rate_limit_rpm": "60", "rate_limit_tpm": ""}
    lists = {"allowed_models": "gpt-*\r\n anthropic/* \r\n", "metadata": "team = search\r\nregion=eu"}
    text_of(sent(administrator, project, PATH, name="shop", scopes=["gateway"], **given, **lists))

    row = ApiKey.objects.get()
    assert (row.monthly_budget_usd, row.rate_limit_rpm, row.rate_limit_tpm) == (20, 60, None)
    assert (row.allowed_models, row.metadata) == (["gpt-*", "anthropic/*"], {"team": "search", "region": "eu"})
    assert row.limits_changed_at is not None
    values: dict[str, Any] = {"project_id": str(project.pk), "api_key_id": row.pk, "cost_usd": "1.2500000000"}
    store(tmp_path, make_entry(**values, ts=int(time.time() * 1_000_000)))
    text = shown(administrator, project, PATH)
    assert "$1.25 of $20" in text
    assert "60 requests a minute; models gpt-*, anthropic/*" in text


@tabled
def test_make__bad_limit__refused_at_its_field(administrator: Client, project: Project, values: dict[str, Any]) -> None:
    text = text_of(sent(administrator, project, PATH, name="shop", scopes=["gateway"], **values))

    assert "errorlist" in text
    assert not ApiKey.objects.exists()


def test_make__name_alone__calls_models_and_nothing_else(administrator: Client, project: Project) -> None:
    form = shown(administrator, project, PATH)
    boxes = re.findall(r'<input type="checkbox" name="scopes" value="([^"]*)"([^>]*)>', form)
    text_of(sent(administrator, project, PATH, name="my app"))

    assert [name for name, more in boxes if "checked" in more] == ["gateway"]
    assert ApiKey.objects.get().scopes == ["gateway"]


def test_make__manage__stands_apart_and_says_what_it_opens(administrator: Client, project: Project) -> None:
    form = shown(administrator, project, PATH)
    before, _, after = form.partition("Only for what administers the project:")

    assert re.findall(r'name="scopes" value="([^"]*)"', after) == ["manage"]
    assert "manage" not in re.findall(r'name="scopes" value="([^"]*)"', before)
    assert DESCRIPTIONS["manage"] in after


def _fields(text: str) -> dict[str, str]:
    form = text[text.rindex('<form method="post" class="form"') :]
    inputs = {
        name: value[1] if (value := re.search(r'value="([^"]*)"', tag)) else ""
        for tag in re.findall(r"<input[^>]*>", form)
        if (name := re.findall(r'name="([^"]*)"', tag)[0]) != "csrfmiddlewaretoken"
    }
    texts = re.findall(r'<textarea name="([^"]*)"[^>]*>\s*([^<]*)</textarea>', form)
    return {**inputs, **{name: value.replace("\n", "\r\n") for name, value in texts}}


def test_change__one_limit__leaves_the_others_even_of_an_expired_key(administrator: Client, project: Project) -> None:
    until = timezone.now() - timedelta(hours=1)
    kept = {"monthly_budget_usd": Decimal("20.5"), "allowed_models": ["gpt-*", "o?"], "metadata": {"team": "a\nb"}}
    row, _ = make_key(project, name="shop", expires_at=until)
    ApiKey.objects.filter(pk=row.pk).update(rate_limit_rpm=60, max_concurrent_requests=3, **kept)
    link = re.findall(r'href="([^"#]*key=\d+[^"#]*)#', shown(administrator, project, PATH))[0]
    given = _fields(text_of(administrator.get(link)))
    assert (given["monthly_budget_usd"], given["rate_limit_rpm"], given["allowed_models"]) == (
        "20.5",
        "60",
        "gpt-*\r\no?",
    )

    sent = administrator.post(
        link, {**given, "action": "change", "rate_limit_rpm": "90", "max_concurrent_requests": ""}
    )

    assert sent.status_code == 302
    row.refresh_from_db()
    assert (row.name, row.expires_at, row.rate_limit_rpm, row.max_concurrent_requests) == ("shop", until, 90, None)
    assert {name: getattr(row, name) for name in kept} == kept
    assert row.limits_changed_at is not None
    assert "The key shop is changed" in shown(administrator, project, PATH)
    entry = AuditEntry.objects.for_project(project.pk).get(object_id=str(row.pk))
    assert entry.changes["rate_limit_rpm"] == [60, 90]


@pytest.mark.parametrize(
    "values",
    [{"name": ""}, {"expires_at": "2020-01-01T00:00"}, {"rate_limit_rpm": "0"}, {"max_concurrent_requests": "100001"}],
)
def test_change__bad_value__refused_at_its_field(
    administrator: Client, project: Project, values: dict[str, str]
) -> None:
    row, _ = make_key(project, name="shop")
    address = f"{PATH}?project={project.pk}&key={row.pk}"
    given = _fields(text_of(administrator.get(address)))

    text = text_of(administrator.post(address, {**given, "rate_limit_tpm": "7", "action": "change", **values}))

    assert "errorlist" in text
    assert 'value="7"' in text
    row.refresh_from_db()
    assert (row.name, row.rate_limit_tpm) == ("shop", None)


def test_change__revoked_or_foreign_key__not_found(administrator: Client, project: Project) -> None:
    revoked, _ = make_key(project)
    revoke_key(revoked)
    foreign, _ = make_key(make_project())

    for key in (revoked.pk, foreign.pk, "x"):
        address = f"{PATH}?project={project.pk}&key={key}"
        assert administrator.get(address).status_code == 404
        assert administrator.post(address, {"action": "change", "name": "mine"}).status_code == 404
    foreign.refresh_from_db()
    assert foreign.name != "mine"


def test_rotate__own_key__shows_the_new_secret_and_keeps_the_earlier_for_a_while(
    administrator: Client, project: Project
) -> None:
    row, old = make_key(project)
    foreign, _ = make_key(make_project())

    [key] = re.findall(r"svc_[\w-]{43}", text_of(sent(administrator, project, PATH, action="rotate", key=row.pk)))

    for secret in (key, old):
        record = find_key(hash_key(secret))
        assert record is not None
        assert record.id == row.pk
    assert sent(administrator, project, PATH, action="rotate", key=foreign.pk).status_code == 302
    foreign.refresh_from_db()
    assert foreign.previous_key_hash is None


def test_revoke__own_and_another_project_s__only_the_own(administrator: Client, project: Project) -> None:
    own, _ = make_key(project)
    other, _ = make_key(make_project())

    for row in (own, other):
        assert sent(administrator, project, PATH, action="revoke", key=row.pk).status_code == 302

    own.refresh_from_db()
    other.refresh_from_db()
    assert own.revoked_at is not None
    assert other.revoked_at is None
    assert "revoked" in shown(administrator, project, PATH)
