from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from core.errors import ConflictError
from core.members.services import change_role, remove_member
from core.models import AuditEntry, Membership, Project
from core.roles import Role
from core.sign_in.providers import GroupRights, Provider
from tests.factories.core import make_project
from tests.sign_in.fake import FakeProvider
from tests.sign_in.steps import BROWSER, signed_in, text_of
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop(db: None) -> Project:
    return make_project("Shop")


@pytest.fixture
def mapped(company: Provider, settings: Settings, shop: Project) -> Provider:
    groups = {
        "platform": GroupRights(is_superuser=True),
        "shop": GroupRights(roles={"Shop": Role.EDITOR}),
        "shop by id": GroupRights(roles={str(shop.pk): Role.ADMINISTRATOR}),
        "support": GroupRights(roles={"*": Role.READER}),
        "gone": GroupRights(roles={"No such project": Role.EDITOR}),
    }
    settings.OIDC_PROVIDERS = (replace(company, groups=groups),)
    return company


def _sign_in(fake: FakeProvider, groups: Any = None, **claims: Any) -> str:
    fake.claims = {**({} if groups is None else {"groups": groups}), **claims}
    response = signed_in(Client(), fake)
    assert response.wsgi_request.user.is_authenticated
    return text_of(response)


def _is_signed_in(client: Client) -> bool:
    return bool(client.get("/admin/", headers=BROWSER).wsgi_request.user.is_authenticated)


def _roles() -> Mapping[str, str]:
    return dict(Membership.objects.values_list("project__name", "role"))


def test_groups__of_a_new_person__bring_an_account_with_their_roles(
    fake: FakeProvider, mapped: Provider, shop: Project
) -> None:
    make_project("Blog")
    _sign_in(fake, ["shop", "support"], email="ada@example.com", email_verified=True, given_name="Ada")

    ada = User.objects.get()
    assert (ada.username, ada.email, ada.first_name) == ("ada", "ada@example.com", "Ada")
    assert (ada.is_staff, ada.is_superuser, ada.has_usable_password()) == (True, False, False)
    assert _roles() == {"Blog": "reader", "Shop": "editor"}
    assert set(Membership.objects.values_list("created_by", flat=True)) == {"provider:company"}


@pytest.mark.parametrize(
    ("groups", "role"), [(["shop by id", "support", "shop"], "administrator"), ("support", "reader")]
)
def test_groups__several_of_one_project_or_a_single_text__highest_role(
    fake: FakeProvider, mapped: Provider, groups: Any, role: str
) -> None:
    _sign_in(fake, groups)
    assert _roles() == {"Shop": role}


def test_groups__that_vanish__take_their_roles_along_and_leave_those_given_by_hand(
    fake: FakeProvider, mapped: Provider, shop: Project
) -> None:
    blog = make_project("Blog")
    _sign_in(fake, ["shop by id"])
    ada = User.objects.get()
    Membership.objects.create(project=blog, user=ada, role=Role.READER)
    _sign_in(fake, ["shop"])
    assert _roles() == {"Shop": "editor", "Blog": "reader"}

    _sign_in(fake, ["support"])
    assert _roles() == {"Shop": "reader", "Blog": "reader"}

    _sign_in(fake, [])
    assert _roles() == {"Blog": "reader"}


def test_role__given_by_hand_before_the_groups__is_there_again_after_them(
    fake: FakeProvider, mapped: Provider, shop: Project
) -> None:
    _sign_in(fake, [])
    Membership.objects.create(project=shop, user=User.objects.get(), role=Role.READER)

    _sign_in(fake, ["shop"])
    assert _roles() == {"Shop": "editor"}
    _sign_in(fake, [])
    assert _roles() == {"Shop": "reader"}


def test_superuser__by_group__ends_with_it(fake: FakeProvider, mapped: Provider) -> None:
    _sign_in(fake, ["platform"])
    assert User.objects.get().is_superuser
    _sign_in(fake, ["support"])
    assert not User.objects.get().is_superuser


def test_superuser__by_hand__stays_without_groups(fake: FakeProvider, mapped: Provider) -> None:
    _sign_in(fake, ["support"])
    User.objects.update(is_superuser=True)
    _sign_in(fake, ["platform"])
    _sign_in(fake, [])
    assert User.objects.get().is_superuser


@tabled
def test_groups__that_bring_nothing__sentence_for_the_person_and_an_event(
    fake: FakeProvider,
    mapped: Provider,
    caplog: pytest.LogCaptureFixture,
    claims: dict[str, Any],
    sentence: str,
    event: str,
) -> None:
    with caplog.at_level(logging.INFO, "core.sign_in"):
        page = _sign_in(fake, **claims)

    assert sentence in page
    assert event in caplog.text
    assert _roles() == {}
    assert not User.objects.get().is_superuser


def test_groups__in_a_claim_within_an_object__are_found(
    fake: FakeProvider, mapped: Provider, settings: Settings
) -> None:
    settings.OIDC_PROVIDERS = (replace(settings.OIDC_PROVIDERS[0], groups_claim="realm_access.roles"),)
    _sign_in(fake, realm_access={"roles": ["shop"]})
    assert _roles() == {"Shop": "editor"}


def test_groups__of_the_user_information__count(fake: FakeProvider, mapped: Provider) -> None:
    fake.user_information = {"groups": ["shop"]}
    _sign_in(fake)
    assert _roles() == {"Shop": "editor"}


def test_member__by_group__is_not_lowered_or_removed_by_hand(
    fake: FakeProvider, mapped: Provider, shop: Project
) -> None:
    _sign_in(fake, ["shop"])
    row = Membership.objects.get()
    with pytest.raises(ConflictError) as lowered:
        change_role(project_id=shop.pk, member_id=row.pk, role=Role.READER, is_superuser=True)
    with pytest.raises(ConflictError) as removed:
        remove_member(project_id=shop.pk, member_id=row.pk, is_superuser=True)
    assert (lowered.value.code, removed.value.code) == ("role_from_groups", "role_from_groups")

    change_role(project_id=shop.pk, member_id=row.pk, role=Role.ADMINISTRATOR, is_superuser=True)
    _sign_in(fake, [])
    assert _roles() == {"Shop": "administrator"}


def test_member__by_hand_and_by_group__taken_out_by_hand_keeps_the_groups_role(
    fake: FakeProvider, mapped: Provider, shop: Project
) -> None:
    _sign_in(fake, ["shop"])
    row = Membership.objects.get()
    change_role(project_id=shop.pk, member_id=row.pk, role=Role.ADMINISTRATOR, is_superuser=True)
    remove_member(project_id=shop.pk, member_id=row.pk, is_superuser=True)
    assert _roles() == {"Shop": "editor"}


def test_roles__by_groups__are_in_the_audit_log_of_the_project(
    fake: FakeProvider, mapped: Provider, shop: Project
) -> None:
    _sign_in(fake, ["shop"])
    _sign_in(fake, [])

    entries = AuditEntry.objects.filter(project=shop, object_kind="member").order_by("id")
    assert [(one.action, one.actor_name, one.operation) for one in entries] == [
        ("created", "ada", "sign_in"),
        ("deleted", "ada", "sign_in"),
    ]
    assert entries[0].changes["group_role"] == [None, "editor"]


def test_account__name_that_is_taken__gets_a_number(fake: FakeProvider, company: Provider) -> None:
    User.objects.create_user("Ada")
    _sign_in(fake)
    assert set(User.objects.values_list("username", flat=True)) == {"Ada", "ada-2"}


def test_account__switched_off__is_not_signed_in(fake: FakeProvider, company: Provider) -> None:
    _sign_in(fake)
    User.objects.update(is_active=False)

    assert "This account is switched off." in text_of(signed_in(Client(), fake))


def test_account__that_may_not_sign_in_any_more__does_not_get_it_back(fake: FakeProvider, company: Provider) -> None:
    _sign_in(fake)
    User.objects.update(is_staff=False)

    assert "This account may not sign in any more." in text_of(signed_in(Client(), fake))
    assert not User.objects.get().is_staff


@pytest.mark.parametrize(("before", "after"), [(["support"], ["shop"]), ([], ["platform"]), (["platform"], [])])
def test_sessions__of_an_account_whose_groups_change__have_ended(
    fake: FakeProvider, mapped: Provider, before: list[str], after: list[str]
) -> None:
    earlier, same, later = Client(), Client(), Client()
    for client, groups in ((earlier, before), (same, before)):
        fake.claims = {"groups": groups}
        signed_in(client, fake)
    assert _is_signed_in(earlier)

    fake.claims = {"groups": after}
    signed_in(later, fake)

    assert [_is_signed_in(one) for one in (earlier, same, later)] == [False, False, True]
