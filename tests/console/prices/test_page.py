from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.prices import page as page
from core.models import Project
from core.roles import Role
from integrations.models import ModelPrice
from integrations.pricing.services import set_price
from tests.console.conftest import shown, signed_in, text_of
from tests.factories.core import make_project

pytestmark = pytest.mark.django_db

LIST, ONE = "/admin/prices/", "/admin/prices/model/"
COSTS = {"input_cost_per_1m": "0.15", "output_cost_per_1m": "2.5"}


@pytest.fixture
def project(db: None) -> Project:
    ModelPrice.objects.all().delete()
    for model, cost in (("tiny-1", "0.075"), ("huge-1", "1200"), ("odd-1", None)):
        costs = {"input_cost_per_1m": Decimal(cost) if cost else None, "output_cost_per_1m": Decimal(1)}
        set_price(project_id=None, provider="openai", model=model, costs=costs, actor="test")
    return make_project()


def _sent(client: Client, project: Project, model: str = "tiny-1", **values: str) -> Any:
    return client.post(f"{ONE}?project={project.pk}&provider=openai&model={model}", values)


def test_list__prices__in_people_s_decimals(administrator: Client, project: Project) -> None:
    text = shown(administrator, project, LIST)

    for price in ("$0.075", "$1,200.00", "$1.00", "unknown"):
        assert f'class="number">{price}</td>' in text


def test_list__search_and_pages__narrow_and_go_on(
    administrator: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "huge-1" not in shown(administrator, project, LIST, search="TINY")
    monkeypatch.setattr(page, "PAGE_ROWS", 2)
    assert "tiny-1" not in shown(administrator, project, LIST)
    assert "tiny-1" in shown(administrator, project, LIST, cursor="openai\nodd-1")


def test_set_and_remove__own_price__counts_in_this_project_alone(administrator: Client, project: Project) -> None:
    assert _sent(administrator, project, **COSTS, action="set").status_code == 302

    own = ModelPrice.objects.get(project=project)
    assert (own.input_cost_per_1m, own.output_cost_per_1m) == (Decimal("0.15"), Decimal("2.5"))
    text = shown(administrator, project, ONE, provider="openai", model="tiny-1")
    assert "$2.50" in text
    assert "$0.075" in text
    assert "the project's own" in text
    assert _sent(administrator, project, action="remove").status_code == 302
    assert not ModelPrice.objects.filter(project=project).exists()
    assert ModelPrice.objects.filter(project=None, model="tiny-1").exists()


def test_set_and_remove__price_of_all_projects__superusers_alone(administrator: Client, project: Project) -> None:
    root = Client()
    root.force_login(User.objects.create_superuser("root"))

    assert _sent(administrator, project, **COSTS, all_projects="on", action="set").status_code == 403
    assert "For all projects" not in shown(administrator, project, ONE, provider="openai", model="tiny-1")
    assert "For all projects" in shown(root, project, ONE, provider="openai", model="tiny-1")
    assert _sent(root, project, **COSTS, all_projects="on", action="set").status_code == 302
    row = ModelPrice.objects.get(model="tiny-1")
    assert (row.project_id, row.source, row.input_cost_per_1m) == (None, "manual", Decimal("0.15"))
    assert "price of all projects away" in shown(root, project, ONE, provider="openai", model="tiny-1")
    assert _sent(root, project, all_projects="on", action="remove").status_code == 302
    assert not ModelPrice.objects.filter(model="tiny-1").exists()


def test_set__bad_value__said_and_kept(administrator: Client, project: Project) -> None:
    text = text_of(_sent(administrator, project, input_cost_per_1m="-1", output_cost_per_1m="7.125", action="set"))

    assert "errorlist" in text
    assert 'value="7.125"' in text
    assert not ModelPrice.objects.filter(project=project).exists()


@pytest.mark.parametrize("role", Role)
def test_pages__roles__readers_see_prices_and_administrators_set_them(project: Project, role: Role) -> None:
    client = signed_in(project, role)
    is_administrator = role is Role.ADMINISTRATOR

    assert "tiny-1" in shown(client, project, LIST)
    assert ("Set price" in shown(client, project, ONE, provider="openai", model="tiny-1")) is is_administrator
    assert _sent(client, project, **COSTS, action="set").status_code == (302 if is_administrator else 403)
    if not is_administrator:
        assert client.post(f"{LIST}?project={project.pk}", {"action": "sync"}).status_code == 403


def test_page__unknown_provider__404(administrator: Client, project: Project) -> None:
    query = {"project": str(project.pk), "provider": "nobody", "model": "m"}

    assert administrator.get(ONE, query).status_code == 404
