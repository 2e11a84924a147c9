"""An account belongs to who signed in to it first: nobody prepares one in which another person is signed in later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from core.models import PersonSession, SignInIdentity
from core.sign_in.providers import GroupRights, Provider
from tests.sign_in.fake import FakeProvider
from tests.sign_in.steps import BROWSER, signed_in, text_of

pytestmark = pytest.mark.django_db

_ADDRESS = "victim@example.com"
_PLATFORM = {"platform": GroupRights(is_superuser=True)}
_VICTIM = {"sub": "vic", "preferred_username": "victim", "email": _ADDRESS, "email_verified": True}
_MALLORY = {"sub": "atk", "preferred_username": "mallory", "email": _ADDRESS, "email_verified": False}


@pytest.fixture
def providers(company: Provider, settings: Settings) -> None:
    """`company` links and makes superusers; `partner` lets people in."""
    linking = replace(company, links_by_email=True, groups=_PLATFORM)
    settings.OIDC_PROVIDERS = (linking, replace(company, name="partner", label="Partner"))


def _sign_in(fake: FakeProvider, claims: dict[str, Any], name: str = "company") -> Client:
    client, fake.claims = Client(), claims
    response = signed_in(client, fake, name=name)
    assert "_auth_user_id" in client.session, text_of(response)
    return client


def _opens_accounts(client: Client) -> bool:
    return client.get("/admin/auth/user/", headers=BROWSER).status_code == 200


def _owner(subject: str) -> str:
    return SignInIdentity.objects.get(subject=subject).user.username


@pytest.mark.parametrize("door", ["company", "partner"])
@pytest.mark.parametrize("is_verified", [False, True, None, "true"])
def test_account__prepared_with_another_persons_address__stays_apart_from_theirs(
    fake: FakeProvider, providers: None, door: str, is_verified: Any
) -> None:
    mallory = _sign_in(fake, {**_MALLORY, "email_verified": is_verified}, door)
    victim = _sign_in(fake, {**_VICTIM, "groups": ["platform"]})

    assert (_owner("atk"), _owner("vic")) == ("mallory", "victim")
    assert (_opens_accounts(mallory), _opens_accounts(victim)) == (False, True)
    assert User.objects.get(username="mallory").email == (_ADDRESS if is_verified is True else "")
    assert User.objects.get(username="victim").email == _ADDRESS


@pytest.mark.parametrize("door", ["company", "partner"])
def test_account__whose_address_comes_again_from_another__is_not_opened(
    fake: FakeProvider, providers: None, door: str
) -> None:
    victim = _sign_in(fake, {**_VICTIM, "groups": ["platform"]})
    mallory = _sign_in(fake, {**_MALLORY, "email_verified": True}, door)

    assert (_owner("vic"), _owner("atk")) == ("victim", "mallory")
    assert (_opens_accounts(victim), _opens_accounts(mallory)) == (True, False)


def test_account__named_by_an_unverified_address__is_not(fake: FakeProvider, providers: None) -> None:
    _sign_in(fake, {"sub": "atk", "preferred_username": None, "email": _ADDRESS})

    assert _owner("atk") == "atk"


def test_account__that_somebody_made__is_opened_once_and_its_sessions_end(fake: FakeProvider, providers: None) -> None:
    ann = User.objects.create_user("ann", email="Victim@example.com", password="long enough", is_staff=False)
    before = Client()
    before.force_login(ann, "core.sign_in.backends.OpenIdBackend")

    _sign_in(fake, _VICTIM)
    _sign_in(fake, {**_VICTIM, "sub": "vic-2"})

    assert (_owner("vic"), _owner("vic-2")) == ("ann", "victim")
    ann.refresh_from_db()
    assert ann.is_staff
    assert not before.get("/admin/", headers=BROWSER).wsgi_request.user.is_authenticated
    assert PersonSession.objects.filter(account_id=ann.pk).count() == 1


@pytest.mark.parametrize(
    ("spoil", "address"),
    [
        (lambda claims: claims | {"email_verified": False}, _ADDRESS),
        (lambda claims: claims | {"email": "v\u0131ctim@example.com"}, _ADDRESS),
        (lambda claims: claims | {"email": "vic\x00tim@example.com"}, _ADDRESS),
        (lambda claims: claims | {"email": None}, ""),
    ],
)
def test_account__that_somebody_made_for_another_address__is_not_opened(
    fake: FakeProvider, providers: None, spoil: Callable[[dict[str, Any]], dict[str, Any]], address: str
) -> None:
    User.objects.create_user("ann", email=address)

    _sign_in(fake, spoil(_VICTIM))

    assert _owner("vic") == "victim"


def test_account__at_a_provider_that_does_not_link__is_a_new_one(fake: FakeProvider, providers: None) -> None:
    User.objects.create_user("ann", email=_ADDRESS)

    _sign_in(fake, _VICTIM, "partner")

    assert _owner("vic") == "victim"


def test_address__verified_beside_another__is_not_believed(fake: FakeProvider, providers: None) -> None:
    User.objects.create_user("ann", email=_ADDRESS)
    fake.user_information = {"sub": "atk", "email": _ADDRESS}

    _sign_in(fake, {**_MALLORY, "email": "mallory@example.com", "email_verified": True})

    assert _owner("atk") == "mallory"


def test_address__that_several_made_accounts_have__opens_a_new_one_and_says_so(
    fake: FakeProvider, providers: None
) -> None:
    for name in ("ann", "anna"):
        User.objects.create_user(name, email=_ADDRESS)
    client, fake.claims = Client(), _VICTIM

    page = text_of(signed_in(client, fake))

    assert "Several accounts here have your e-mail address" in page
    assert _owner("vic") == "victim"


def test_command__accounts_of_several_identities__are_listed(fake: FakeProvider, providers: None) -> None:
    _sign_in(fake, _VICTIM)
    _sign_in(fake, {"sub": "other"})
    assert _listed() == "No account is opened by several identities.\n"

    SignInIdentity.objects.create(provider="partner", subject="atk", user=User.objects.get(username="victim"))

    lines = _listed().splitlines()
    assert lines[0] == f"victim <{_ADDRESS}>"
    assert [line.split(",")[0].strip() for line in lines[1:]] == ["company/vic", "partner/atk"]


def _listed() -> str:
    out = StringIO()
    call_command("list_shared_accounts", stdout=out)
    return out.getvalue()
