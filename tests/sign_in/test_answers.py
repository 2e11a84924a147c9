from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import Client
from joserfc.jwk import OctKey
from pytest_django import Settings

from core.models import AuditEntry
from core.sign_in.providers import Provider
from core.sign_in.throttle import MAX_BEGUN
from tests.sign_in.fake import CLIENT_SECRET, FakeProvider
from tests.sign_in.steps import BROWSER, begun, returned, signed_in
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

_UNVERIFIED = "The answer of Company could not be verified, so nobody was signed in."
_UNUSABLE = "Company gave an answer that this service cannot use."
_AWAY = "Company does not answer as it should."


def _unknown_key(fake: FakeProvider) -> None:
    fake.signing_key, fake.header = fake.other_key, {"alg": "RS256", "kid": "unknown"}


def _key_of_the_same_name(fake: FakeProvider) -> None:
    fake.signing_key = fake.other_key


def _signed_with_the_secret(fake: FakeProvider) -> None:
    fake.signing_key, fake.header = OctKey.import_key(CLIENT_SECRET), {"alg": "HS256", "kid": "known"}


def _unsigned(fake: FakeProvider) -> None:
    fake.signing_key = None


def _claims(**claims: object) -> Callable[[FakeProvider], None]:
    return lambda fake: fake.claims.update(claims)


def _answer(path: str, status: int, answer: object) -> Callable[[FakeProvider], None]:
    return lambda fake: fake.replaced.update({path: (status, answer)})


def _somebody_else(fake: FakeProvider) -> None:
    fake.user_information = {"sub": "subject-2"}


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_claims(nonce="another"), _UNVERIFIED),
        (_claims(exp=time.time() - 600, iat=time.time() - 900), _UNVERIFIED),
        # The tests may run long after this line.
        (_claims(iat=time.time() + 86_400), _UNVERIFIED),
        (_claims(iss="https://elsewhere.example"), _UNVERIFIED),
        (_claims(aud="another-client"), _UNVERIFIED),
        (_claims(aud="another-client", azp="gateway"), _UNVERIFIED),
        (_claims(aud=["gateway", "another-client"], azp="another-client"), _UNVERIFIED),
        (_unknown_key, _UNVERIFIED),
        (_key_of_the_same_name, _UNVERIFIED),
        (_signed_with_the_secret, _UNVERIFIED),
        (_unsigned, _UNVERIFIED),
        (_somebody_else, _UNVERIFIED),
        (_answer("/token", 200, {"access_token": "a", "token_type": "Bearer"}), _UNVERIFIED),
        (_answer("/token", 400, {"error": "invalid_grant"}), "Company refused the sign-in (invalid_grant)."),
        (_answer("/token", 200, "no JSON"), _UNUSABLE),
        (_answer("/token", 503, {}), _AWAY),
        (_answer("/keys", 500, {}), _AWAY),
        (_answer("/keys", 200, {"keys": "none"}), _UNVERIFIED),
    ],
)
def test_answer__not_to_be_believed__nobody_is_signed_in_and_the_login_says_why(
    client: Client, fake: FakeProvider, company: Provider, spoil: Callable[[FakeProvider], None], sentence: str
) -> None:
    spoil(fake)

    response = signed_in(client, fake)

    assert response.redirect_chain[-1][0] == "/admin/login/?next=%2Fadmin%2F"
    page = response.content.decode()
    assert sentence in page
    assert "Password:" in page
    assert "_auth_user_id" not in client.session
    assert not User.objects.exists()


def test_answer__clocks_that_differ_by_half_a_minute__signs_in(
    client: Client, fake: FakeProvider, company: Provider
) -> None:
    fake.claims = {"iat": int(time.time()) + 30, "exp": int(time.time()) - 30}

    assert signed_in(client, fake).redirect_chain[-1][0].startswith("/admin/")
    assert client.session["_auth_user_id"]


@pytest.mark.parametrize("seconds", [1, 30, 60])
def test_answer__access_token_that_lives_short__signs_in_with_user_information(
    client: Client, fake: FakeProvider, company: Provider, seconds: int
) -> None:
    fake.user_information = {"given_name": "Ada"}
    fake.token = {"expires_in": seconds}

    signed_in(client, fake)

    assert client.session["_auth_user_id"]
    assert User.objects.get().first_name == "Ada"


def test_answer__that_comes_twice__counts_once(client: Client, fake: FakeProvider, company: Provider) -> None:
    state = begun(client, fake)["state"]
    returned(client, state)
    client.post("/admin/logout/")

    again = returned(client, state)

    assert "was used already" in again.content.decode()
    assert "_auth_user_id" not in client.session


def test_answer__of_another_browser__signs_nobody_in(client: Client, fake: FakeProvider, company: Provider) -> None:
    state = begun(Client(), fake)["state"]

    assert "begun in another browser" in returned(client, state).content.decode()
    assert not User.objects.exists()


@tabled
def test_answer__error_of_the_provider__sentence_without_its_words(
    client: Client, fake: FakeProvider, company: Provider, error: str, sentence: str
) -> None:
    state = begun(client, fake)["state"]

    page = returned(client, state, error=error, error_description="Call 555").content.decode()

    assert sentence in page
    assert "Call 555" not in page


def test_error__without_a_sign_in_that_was_begun__is_not_shown(client: Client, company: Provider) -> None:
    assert "did not let you sign in" not in returned(client, "none", error="access_denied").content.decode()


def test_provider__away__local_login_is_still_there_and_the_log_says_which(
    client: Client, fake: FakeProvider, company: Provider, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OIDC_PROVIDERS = (replace(company, issuer="http://127.0.0.1:9"),)
    with caplog.at_level(logging.WARNING, "core.sign_in"):
        response = client.get("/admin/sign-in/company/", {"next": "/admin/usage/"}, follow=True, headers=BROWSER)

    page = response.content.decode()
    assert response.redirect_chain[-1][0] == "/admin/login/?next=%2Fadmin%2Fusage%2F"
    assert _AWAY in page
    assert "Password:" in page
    assert "sign_in.failed provider=company reason=ConnectionError" in caplog.text


@pytest.mark.parametrize("discovery", [{"issuer": "https://elsewhere.example"}, {"token_endpoint": None}])
def test_discovery__of_another_issuer_or_without_an_endpoint__is_not_used(
    client: Client, fake: FakeProvider, company: Provider, discovery: dict[str, object]
) -> None:
    fake.discovery = discovery

    assert _UNUSABLE in client.get("/admin/sign-in/company/", follow=True, headers=BROWSER).content.decode()


def test_request__to_the_provider__code_with_pkce_state_and_nonce(
    client: Client, fake: FakeProvider, company: Provider
) -> None:
    sent = begun(client, fake)
    returned(client, sent["state"])

    assert sent["response_type"] == "code"
    assert sent["scope"].split() == ["openid", "profile", "email"]
    assert sent["code_challenge_method"] == "S256"
    assert sent["redirect_uri"] == "http://testserver/admin/sign-in/company/callback/"
    form = fake.posted[0]
    assert form["code_verifier"][0] not in (sent["code_challenge"], sent["state"])
    assert "client_secret" not in form


def test_request__parameters_of_the_link__reach_no_provider(
    client: Client, fake: FakeProvider, company: Provider
) -> None:
    response = client.get("/admin/sign-in/company/?scope=admin&redirect_uri=https://evil.example&prompt=none")

    assert "evil" not in response["Location"]
    assert "admin&" not in response["Location"]
    assert "prompt" not in response["Location"]


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_next__that_is_no_page_here__ends_at_the_start_page(
    client: Client, fake: FakeProvider, company: Provider, target: str
) -> None:
    assert signed_in(client, fake, target).redirect_chain[0] == ("/admin/", 302)


def test_next__page_here__is_where_the_sign_in_ends(client: Client, fake: FakeProvider, company: Provider) -> None:
    assert signed_in(client, fake, "/admin/usage/").redirect_chain[0] == ("/admin/usage/", 302)


def test_sign_ins__too_many_begun_from_an_address__429(client: Client, fake: FakeProvider, company: Provider) -> None:
    for _ in range(MAX_BEGUN):
        assert client.get("/admin/sign-in/company/").status_code == 302

    refused = client.get("/admin/sign-in/company/", headers=BROWSER)

    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    assert client.get("/admin/sign-in/company/", REMOTE_ADDR="192.0.2.9").status_code == 302


def test_provider__that_the_settings_do_not_name__404(client: Client) -> None:
    assert client.get("/admin/sign-in/company/").status_code == 404
    assert client.get("/admin/sign-in/company/callback/").status_code == 404


def test_login_page__without_providers__has_no_other_way_in(client: Client) -> None:
    page = client.get("/admin/login/").content.decode()

    assert "Sign in with" not in page
    assert "Password:" in page


def test_local_login__switched_off__only_the_provider_is_offered_and_a_password_is_refused(
    client: Client, company: Provider, settings: Settings
) -> None:
    User.objects.create_superuser("ada", password="long enough")
    settings.LOCAL_LOGIN = False

    page = client.get("/admin/login/?next=/admin/usage/").content.decode()
    given = {"username": "ada", "password": "long enough"}
    refused = client.post("/admin/login/", given, headers=BROWSER)

    assert client.post("/admin/login/", given).json()["error"]["code"] == "local_login_off"
    assert "Password:" not in page
    assert "/admin/sign-in/company/?next=%2Fadmin%2Fusage%2F" in page
    assert refused.status_code == 403
    assert "Logins with a password are switched off here" in refused.content.decode()
    assert "_auth_user_id" not in client.session


def test_secrets__of_a_sign_in__are_in_no_log(
    client: Client, fake: FakeProvider, company: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    fake.claims = {"nonce": "another"}
    with caplog.at_level(logging.DEBUG, "core"):
        signed_in(client, fake)
        fake.claims = {}
        signed_in(client, fake)

    verifier = fake.posted[0]["code_verifier"][0]
    assert "sign_in.succeeded" in caplog.text
    assert not any(secret in caplog.text for secret in (CLIENT_SECRET, verifier, fake.id_token()[:40], "code-1"))
    assert CLIENT_SECRET not in repr(company)


def test_sign_in__by_either_way__is_in_the_audit_log_with_its_method(
    client: Client, fake: FakeProvider, company: Provider
) -> None:
    User.objects.create_superuser("ben", password="long enough")
    signed_in(client, fake)
    Client().post("/admin/login/", {"username": "ben", "password": "long enough"})

    entries = AuditEntry.objects.filter(object_kind="sign-in").order_by("id")
    assert [(one.actor_name, one.changes["method"][1]) for one in entries] == [
        ("ada", "OpenID Connect (company)"),
        ("ben", "password"),
    ]
