from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from core.http.logins import client_address
from tests.tables.cases import tabled

_PATH = "/admin/login/?next=/admin/"
BROWSER = {"accept": "text/html,application/xhtml+xml"}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limit(settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 3


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_superuser("ada", password="long enough")


_WRONG = "wrong"


def login(name: str, password: str = _WRONG, *, address: str = "192.0.2.1", **headers: str) -> Any:
    client = Client(REMOTE_ADDR=address, raise_request_exception=False)
    return client.post(_PATH, {"username": name, "password": password}, headers={**BROWSER, **headers})


def locked(name: str, **more: Any) -> Any:
    for _ in range(2):
        assert login(name, **more).status_code == 200
    login(name, **more)
    return login(name, **more)


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_login__failed_too_often__is_refused_alike_for_names_that_exist_or_not(ada: User, name: str) -> None:
    answer = locked(name)

    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "900"
    text = answer.content.decode()
    assert "Too many logins under this name failed from here. Try again in 15 minutes." in text
    assert f" {name} " not in text
    told = login(name, "long enough", accept="application/json")
    assert (told.status_code, told.json()["error"]["code"]) == (429, "too_many_logins")


def test_login__locked_from_one_address__is_free_from_another_and_for_another_name(ada: User) -> None:
    User.objects.create_superuser("ben", password="long enough")
    locked("ada")

    assert login("ada", "long enough", address="192.0.2.2").status_code == 302
    assert login("ben", "long enough").status_code == 302


def test_login__after_the_cool_off__is_free_however_often_it_was_tried_meanwhile(ada: User) -> None:
    locked("ada")
    with patch("axes.handlers.proxy.now", return_value=timezone.now() + timedelta(seconds=800)):
        assert login("ada", "long enough").status_code == 429
    with patch("axes.handlers.proxy.now", return_value=timezone.now() + timedelta(seconds=901)):
        assert login("ada", "long enough").status_code == 302


def test_login__that_succeeds__forgets_the_failures_before(ada: User) -> None:
    for _ in range(2):
        for _ in range(2):
            login("ada")
        assert login("ada", "long enough").status_code == 302


def test_login__database_locked__is_503_and_says_when(ada: User) -> None:
    with patch("axes.handlers.database.AccessAttempt.objects", side_effect=OperationalError) as objects:
        objects.filter.side_effect = OperationalError("database is locked")
        answer = login("ada")

    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "The database is not available" in answer.content.decode()


@tabled
def test_address__behind_proxies__is_what_the_outermost_of_ours_saw(
    settings: Settings, proxies: int, forwarded: str, address: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert client_address(RequestFactory(REMOTE_ADDR="192.0.2.1").get("/", headers=headers)) == address


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_login__next_that_is_no_page_here__ends_at_the_start_page(ada: User, target: str) -> None:
    client = Client()
    answer = client.post("/admin/login/", {"username": "ada", "password": "long enough", "next": target}, follow=True)

    assert answer.redirect_chain[-1] == ("/admin/", 302)
    assert answer.status_code == 200
