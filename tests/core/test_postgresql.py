from __future__ import annotations

import pytest
from django.db import InternalError, close_old_connections, connection, connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from core.models import Project
from core.postgresql.base import DatabaseWrapper as OwnWrapper


def _write_to_replica(request: HttpRequest) -> HttpResponse:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        Project.objects.create(name="of a page")
    return HttpResponse("written")


urlpatterns = [path("admin/notes/", _write_to_replica), path("api/notes", _write_to_replica)]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db(transaction=True)]


def _become_replica() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")


def test_connection__server_takes_no_writes__is_left_for_one_that_does() -> None:
    _become_replica()
    with pytest.raises(InternalError, match="read-only"):
        Project.objects.create(name="too early")

    close_old_connections()

    assert Project.objects.create(name="after the failover") in Project.objects.all()


def test_connection__server_takes_no_writes_while_it_is_idle__is_left_before_the_next_query() -> None:
    """A read would be of the past: a revoked key would be found."""
    Project.objects.count()
    _become_replica()

    close_old_connections()
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("off",)


def test_pool__server_of_a_connection_takes_no_writes__the_connection_is_not_lent_again() -> None:
    settings_dict = connections.databases["default"]
    options = {**settings_dict["OPTIONS"], "pool": {"min_size": 0, "max_size": 1, "timeout": 10}}
    pooled: DatabaseWrapper = OwnWrapper({**settings_dict, "OPTIONS": options, "CONN_MAX_AGE": 0}, "pooled")
    try:
        with pooled.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
        # A query that failed has Django ask whether the connection is of use.
        pooled.errors_occurred = True
        pooled.close_if_unusable_or_obsolete()

        with pooled.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            assert cursor.fetchone() == ("off",)
    finally:
        pooled.close()
        pooled.close_pool()


@pytest.mark.parametrize("address", ["/admin/notes/", "/api/notes"])
def test_request__server_takes_no_writes__503_and_when_to_try_again(address: str) -> None:
    answer = Client(raise_request_exception=False).post(address)

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
