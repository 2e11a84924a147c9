from __future__ import annotations

import base64
import re
import time
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.utils import timezone
from django_otp.oath import TOTP
from pytest_django import Settings

from core.encryption.rotation import models_with_secrets
from core.models import AuditEntry, RecoveryCode, SecondFactor
from core.sign_in import second_factor
from tests.sign_in.steps import BROWSER

pytestmark = pytest.mark.django_db

_PASSWORD = "long enough"
_WRONG = "This code is wrong"


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_superuser("ada", password=_PASSWORD)


@pytest.fixture
def required(settings: Settings) -> None:
    """The settings as SECOND_FACTOR=superusers makes them."""
    settings.SECOND_FACTOR = "superusers"
    settings.AUTHENTICATION_BACKENDS = [
        name.replace("django.contrib.auth.backends.ModelBackend", "core.sign_in.backends.PasswordBackend")
        for name in settings.AUTHENTICATION_BACKENDS
    ]


def _password(client: Client, name: str = "ada", target: str = "/admin/usage/") -> Any:
    return client.post(
        "/admin/login/", {"username": name, "password": _PASSWORD, "next": target}, follow=True, headers=BROWSER
    )


def _code(client: Client, code: str) -> Any:
    return client.post("/admin/second-factor/code/", {"code": code}, headers=BROWSER)


def _code_of(user: User, step: int = 0) -> str:
    """`step` counts half minutes from now."""
    totp = TOTP(base64.b32decode(second_factor.key_of(SecondFactor.objects.get(user=user))))
    totp.time = time.time() + 30 * step
    return f"{totp.token():06d}"


def _confirmed(user: User) -> list[str]:
    second_factor.begin(user)
    codes = second_factor.confirm(user, _code_of(user, -1))
    assert codes is not None
    return codes


def _is_signed_in(client: Client) -> bool:
    return client.get("/admin/tables/").status_code == 200


def test_second_factor__set_up_on_its_page__recovery_codes_once_and_an_audit_entry(client: Client, ada: User) -> None:
    _password(client)
    page = client.get("/admin/second-factor/").content.decode()
    key = re.search(r'second-factor-key">([A-Z2-7]{32})<', page)
    assert key is not None and "<svg" in page
    assert key[1] in client.get("/admin/second-factor/").content.decode()
    assert _WRONG in client.post("/admin/second-factor/", {"code": "12345x"}).content.decode()
    SecondFactor.objects.update(throttling_failure_timestamp=None, throttling_failure_count=0)

    done = client.post("/admin/second-factor/", {"code": _code_of(ada)}).content.decode()

    assert len(re.findall(r"<li><code>[a-z2-7]{4}(-[a-z2-7]{4}){3}</code>", done)) == second_factor.RECOVERY_CODES
    assert "10 recovery codes left" in client.get("/admin/second-factor/").content.decode()
    entry = AuditEntry.objects.get(object_kind="second factor")
    assert (entry.actor_name, entry.action, entry.changes) == ("ada", "created", {})


def test_login__with_a_second_factor__password_alone_signs_nobody_in(client: Client, ada: User) -> None:
    _confirmed(ada)

    asked = _password(client)

    assert asked.redirect_chain == [("/admin/second-factor/code/", 302)]
    assert not _is_signed_in(client)
    assert client.get("/api/llm/members").status_code == 401
    done = _code(client, _code_of(ada))
    assert (done.status_code, done["Location"]) == (302, "/admin/usage/")
    assert _is_signed_in(client)
    assert AuditEntry.objects.get(object_kind="sign-in").changes["method"] == [None, "password and code"]


@pytest.mark.parametrize("code", ["000", "abcdef", "²²²²²²", "'; --", "12345678"])
def test_code__wrong__sentence_at_the_field_and_nobody_signed_in(client: Client, ada: User, code: str) -> None:
    _confirmed(ada)
    _password(client)

    assert _WRONG in _code(client, code).content.decode()
    assert not _is_signed_in(client)


def test_code__used_before__is_wrong(client: Client, ada: User) -> None:
    _confirmed(ada)
    code = _code_of(ada)
    _password(client)
    assert _code(client, code).status_code == 302

    other = Client()
    _password(other)
    assert _WRONG in _code(other, code).content.decode()


def test_recovery_code__in_any_spelling__opens_once(client: Client, ada: User) -> None:
    codes = _confirmed(ada)
    _password(client)
    assert _code(client, codes[0].upper().replace("-", " ")).status_code == 302
    assert AuditEntry.objects.get(object_kind="sign-in").changes["method"] == [None, "password and recovery code"]

    other = Client()
    _password(other)
    assert _WRONG in _code(other, codes[0]).content.decode()


def test_code__after_a_wrong_one__waits_twice_as_long_each_time(client: Client, ada: User, settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 100
    codes = _confirmed(ada)
    _password(client)
    for _ in range(3):
        SecondFactor.objects.update(throttling_failure_timestamp=None)
        _code(client, "000000")
    assert _WRONG in _code(client, codes[0]).content.decode()

    with patch("django_otp.models.timezone.now", return_value=timezone.now() + timedelta(seconds=5)):
        assert _code(client, codes[0]).status_code == 302


def test_codes__wrong_too_often__lock_the_name_as_passwords_do(client: Client, ada: User, settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    codes = _confirmed(ada)
    _password(client)
    answers = [_code(client, "000000").status_code for _ in range(3)]

    assert answers == [200, 200, 429]
    assert _code(client, codes[0]).status_code == 429
    assert _password(Client()).status_code == 429


def test_code__password_given_long_ago_or_changed_since__begins_again(client: Client, ada: User) -> None:
    codes = _confirmed(ada)
    _password(client)
    with patch("core.sign_in.codes.time.time", return_value=time.time() + 601):
        assert _code(client, codes[0])["Location"] == "/admin/login/"

    _password(client)
    ada.set_password("another one")
    ada.save()
    assert _code(client, codes[1])["Location"] == "/admin/login/"
    assert Client().get("/admin/second-factor/code/")["Location"] == "/admin/login/"
    assert Client().get("/admin/second-factor/")["Location"] == "/admin/login/"


def test_required__without_one__is_set_up_before_anything_opens(client: Client, ada: User, required: None) -> None:
    asked = _password(client)

    assert asked.redirect_chain == [("/admin/second-factor/", 302)]
    assert "This service asks for a second factor." in asked.content.decode()
    assert not _is_signed_in(client)
    done = client.post("/admin/second-factor/", {"code": _code_of(ada)}).content.decode()
    assert 'href="/admin/usage/"' in done
    assert _is_signed_in(client)


def test_required__of_superusers__others_sign_in_with_the_password(client: Client, required: None) -> None:
    ben = User.objects.create_user("ben", password=_PASSWORD, is_staff=True)
    _password(client, "ben")
    assert _is_signed_in(client)

    User.objects.filter(pk=ben.pk).update(is_superuser=True)
    assert not _is_signed_in(client)


def test_second_factor__removed_with_a_code__unless_it_is_required(
    client: Client, ada: User, settings: Settings
) -> None:
    codes = _confirmed(ada)
    _password(client)
    _code(client, codes[0])
    assert _WRONG in client.post("/admin/second-factor/", {"code": "1", "action": "remove"}).content.decode()
    SecondFactor.objects.update(throttling_failure_timestamp=None)
    settings.SECOND_FACTOR = "all"
    client.post("/admin/second-factor/", {"code": codes[1], "action": "remove"})
    assert second_factor.has_one(ada)

    settings.SECOND_FACTOR = "optional"
    client.post("/admin/second-factor/", {"code": _code_of(ada), "action": "remove"})
    assert not second_factor.has_one(ada)
    assert [one.action for one in AuditEntry.objects.filter(object_kind="second factor")] == ["deleted"]


def test_recovery_codes__made_anew__those_before_open_nothing(client: Client, ada: User) -> None:
    before = _confirmed(ada)
    _password(client)
    _code(client, before[0])
    page = client.post("/admin/second-factor/", {"code": _code_of(ada), "action": "codes"}).content.decode()

    after = re.findall(r"<li><code>(.+?)</code>", page)
    assert len(after) == second_factor.RECOVERY_CODES
    assert second_factor.verify(ada, before[1]) is None
    SecondFactor.objects.update(throttling_failure_timestamp=None)
    assert second_factor.verify(ada, after[0]) == second_factor.RECOVERY_CODE


def test_second_factor__lost__is_reset_by_a_command_or_a_superuser(client: Client, ada: User) -> None:
    ben = User.objects.create_user("ben", password=_PASSWORD, is_staff=True)
    for person in (ada, ben):
        _confirmed(person)
    call_command("reset_second_factor", "ada")
    with pytest.raises(CommandError):
        call_command("reset_second_factor", "nobody")
    _password(client)
    assert _is_signed_in(client)

    chosen = {"action": "reset_second_factor", "_selected_action": [ben.pk]}
    answer = client.post("/admin/auth/user/", chosen, follow=True)

    assert "1 of these accounts had a second factor" in answer.content.decode()
    assert not SecondFactor.objects.exists() and not RecoveryCode.objects.exists()
    entries = AuditEntry.objects.filter(object_kind="second factor").order_by("id")
    assert [(one.actor_kind, one.object_label, one.action) for one in entries] == [
        ("command", "ada", "deleted"),
        ("user", "ben", "deleted"),
    ]


def test_secrets__of_a_second_factor__are_stored_encrypted_and_rotated(ada: User) -> None:
    codes = _confirmed(ada)
    key = second_factor.key_of(SecondFactor.objects.get())
    with connection.cursor() as cursor:
        cursor.execute("SELECT encrypted_key FROM core_secondfactor UNION SELECT code_hash FROM core_recoverycode")
        stored = str(cursor.fetchall())

    assert key not in stored
    assert codes[0].replace("-", "") not in stored
    assert SecondFactor in models_with_secrets()
