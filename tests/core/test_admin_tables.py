from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core.models import ApiKey
from core.roles import Role
from integrations.models import ModelPrice
from tests.factories.core import make_key, make_project, make_staff
from tests.factories.prompts import make_config

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="long enough"))
    return client


def shown(client: Client, path: str) -> str:
    return " ".join(client.get(f"/admin/{path}").content.decode().split())


def test_list__values__in_the_formats_of_all_pages(admin: Client) -> None:
    project = make_project("shop")
    row, _ = make_key(project, ("gateway", "manage"), name="ci")
    ApiKey.objects.filter(pk=row.pk).update(last_used_at=datetime(2024, 3, 4, 15, 47, 3, tzinfo=UTC))
    text = shown(admin, "core/apikey/")
    assert "gateway, manage" in text
    assert '<time datetime="2024-03-04T15:47:03Z"' in text
    assert "p.m." not in text
    ModelPrice.objects.create(project=project, provider="openai", model="m", source="manual", input_cost_per_1m="0.15")
    prices = shown(admin, "integrations/modelprice/?q=m&source=manual")
    assert "$0.15" in prices
    assert "0.1500000000" not in prices


def test_list__yes_and_no__words_and_no_red_crosses(admin: Client) -> None:
    make_config(versions=1)
    text = shown(admin, "prompts/promptconfig/")
    assert '<span class="muted">no</span>' in text
    assert "icon-no" not in text


def test_list__cells__have_the_labels_of_their_columns_and_a_caption(admin: Client) -> None:
    make_config(name="support", versions=1)
    text = shown(admin, "prompts/promptconfig/")
    assert "<caption>Prompt configs</caption>" in text
    assert re.search(r'<th data-label="Name"[^>]*><a href="[^"]+">support</a>', text)
    assert 'data-label="Has active rollout"' in text
    assert all('scope="col"' in head for head in re.findall("<th [^>]*>", text.partition("<tbody>")[0]))


def test_list__sorted_by_a_formatted_column__in_that_order(admin: Client) -> None:
    project = make_project()
    names = {}
    for name, day in (("early", 3), ("late", 5)):
        names[name], _ = make_key(project, name=name)
        ApiKey.objects.filter(pk=names[name].pk).update(last_used_at=datetime(2024, 3, day, tzinfo=UTC))
    head = shown(admin, "core/apikey/")
    order = re.search(r'href="\?o=(\d+)[^"]*">Last used at', head)
    assert order is not None
    text = shown(admin, f"core/apikey/?o={order[1]}")
    assert text.index(">early<") < text.index(">late<")
    text = shown(admin, f"core/apikey/?o=-{order[1]}")
    assert text.index(">late<") < text.index(">early<")


def test_list__empty__next_step_for_who_may_take_it(admin: Client, client: Client) -> None:
    assert 'No projects yet. <a href="add/">Add the first</a>' in shown(admin, "core/project/")
    assert "No prompt configs yet.</p>" in shown(admin, "prompts/promptconfig/")
    project = make_project()
    assert "fit these filters" in shown(admin, "core/project/?q=nothing")
    client.force_login(make_staff(Role.READER, project))
    assert "Add the first" not in shown(client, "core/project/?q=nothing")


@pytest.mark.parametrize("path", ["core/apikey/", "core/project/add/", "auth/user/"])
def test_page__scripts__few_and_without_jquery(admin: Client, path: str) -> None:
    make_key(make_project())
    scripts = re.findall(r'<script[^>]+src="([^"]+)"', shown(admin, path))
    assert not [one for one in scripts if "jquery" in one or "xregexp" in one or "select2" in one]
    assert len(scripts) <= 4


def test_form__time__one_field_with_a_label(admin: Client) -> None:
    ann = make_staff(name="ann")
    path = f"auth/user/{ann.pk}/change/"
    text = shown(admin, path)
    assert '<input type="datetime-local" name="last_login"' in text
    assert re.search(r'<label for="id_last_login"[^>]*>', text)
    given = {"username": "ann", "is_staff": "on", "date_joined": "2020-01-01T00:00", "last_login": "2090-01-02T03:04"}
    admin.post(f"/admin/{path}", given)
    ann.refresh_from_db()
    assert ann.last_login == datetime(2090, 1, 2, 3, 4, tzinfo=UTC)


def test_form__values_that_do_not_change__in_the_formats_of_all_pages(admin: Client) -> None:
    row, _ = make_key(make_project(), ("gateway",), name="ci")
    text = shown(admin, f"core/apikey/{row.pk}/change/")
    assert '<div class="readonly">gateway</div>' in text
    assert f'<time datetime="{row.created_at.isoformat().replace("+00:00", "Z")}"' in text


def test_tables__all__named_with_what_can_be_added(admin: Client) -> None:
    text = shown(admin, "tables/")
    assert "API keys" in text
    assert 'href="/admin/core/project/add/"' in text
    assert 'href="/admin/core/apikey/add/"' not in text


@pytest.mark.parametrize("address", ["/admin/password_change/", "/admin/login/", "/admin/auth/user/1/password/"])
def test_page_of_django__account__has_no_stylesheet_of_djangos_forms(client: Client, address: str, db: None) -> None:
    root = User.objects.create_superuser("root", password="long enough", pk=1)
    if "login" not in address:
        client.force_login(root)

    shown = client.get(address).content.decode()

    assert "core/ui/ui.css" in shown
    assert "admin/css/forms.css" not in shown and "admin/css/login.css" not in shown


def test_password_change__wrong_and_right__keeps_the_account(client: Client, db: None) -> None:
    client.force_login(User.objects.create_superuser("root", password="long enough"))
    changed = {
        "old_password": "long enough",
        "new_password1": "a longer secret 7",
        "new_password2": "a longer secret 7",
    }

    refused = client.post("/admin/password_change/", {**changed, "old_password": "wrong"}).content.decode()
    assert "Your old password was entered incorrectly" in refused

    assert "Your password was changed." in client.post("/admin/password_change/", changed, follow=True).content.decode()
    assert User.objects.get().check_password("a longer secret 7")
