from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analytics.clickhouse import migrator
from analytics.errors import AnalyticsSchemaError
from config import deployment
from config.deployment.problem import Problem
from config.supervisor import analytics, preparation, schema
from core.models import EncryptionCanary


def test_prepare_database__set_up_that_would_be_wrong__refused_with_every_reason_before_a_table_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong() -> Iterator[Problem]:
        yield Problem("redis", "Redis is a replica.")
        yield Problem("database", "The database takes no writes.")

    monkeypatch.setattr(deployment, "REFUSALS", (wrong,))
    monkeypatch.setattr("config.supervisor.schema.wait_for_database", lambda: None)

    # Without a database, whatever came after the refusal would fail otherwise.
    with pytest.raises(CommandError, match=r"^Redis is a replica\. The database takes no writes\.$"):
        preparation.prepare_database("http://127.0.0.1", lambda _: True, lambda: None, migrate=True)


def test_migrate_all__analytics_store_refused__sql_database_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AnalyticsSchemaError("The analytics store is at migration 21.")

    monkeypatch.setattr(migrator, "look", refuse)

    # Without a database, the migration of its tables would fail otherwise.
    with pytest.raises(CommandError, match="is at migration 21"):
        call_command("migrate_all")


@pytest.mark.django_db(transaction=True)
def test_prepare_database__keys_of_another_installation__refused_before_tables_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def changed() -> None:
        raise AssertionError("the tables were migrated")

    EncryptionCanary.objects.update_or_create(pk=1, defaults={"token": "of other keys"})
    monkeypatch.setattr(deployment, "REFUSALS", ())
    monkeypatch.setattr(schema, "migrate_database", changed)

    with pytest.raises(CommandError, match="ENCRYPTION_KEYS has none of the keys"):
        preparation.prepare_database("http://127.0.0.1", lambda _: True, lambda: None, migrate=True)


async def test_look__engine_that_does_not_start__keeps_no_gateway_from_serving(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(analytics, "_LOOK_SECONDS", 0.01)
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    await analytics.AnalyticsPreparation(migrate=True).look([never])

    assert "analytics.not_looked_at" in caplog.text
