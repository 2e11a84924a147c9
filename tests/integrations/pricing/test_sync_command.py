from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from celery import current_app
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from core.models import AuditEntry
from integrations.models import CatalogState, PriceSyncLog
from integrations.selectors import price_table
from integrations.tasks import sync_pricing
from tests.integrations.pricing.catalog_server import CatalogServer
from tests.integrations.pricing.catalogs import catalog_b, model_a

pytestmark = pytest.mark.django_db

A = {"gpt-4o": model_a(2.5, 10, 1.25)}
B = catalog_b(openai={"o9": (1, 4)})


def run(**options: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("sync_pricing", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_sync_pricing__addresses_of_the_settings__prints_the_outcome(server: CatalogServer) -> None:
    server.serve("/a", A)
    server.fail("/b", 503)
    assert run() == (
        "partial: added 2, updated 0, removed 0, skipped 0\n",
        "catalog_b 127.0.0.1: HTTP status 503\n",
    )
    assert PriceSyncLog.objects.get().trigger == "command"


def test_sync_pricing__file_and_address__instead_of_the_settings(server: CatalogServer, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(A))
    server.serve("/mirror", B, etag='"m"')
    out, err = run(catalog_a=str(file), catalog_b=f"{server.url}/mirror")
    assert (out, err) == ("success: added 3, updated 0, removed 0, skipped 0\n", "")
    assert server.requests == [("/mirror", None)]
    assert {state.source: state.etag for state in CatalogState.objects.all()} == {"catalog_a": "", "catalog_b": '"m"'}


def test_sync_pricing__nothing_readable__command_error(server: CatalogServer, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(b"\0\1\2")
    with pytest.raises(CommandError, match="as they were"):
        run(catalog_a=str(tmp_path / "missing.json"), catalog_b=str(tmp_path / "b.json"))
    problems = [error["message"] for error in PriceSyncLog.objects.get().errors]
    assert problems[0] == "missing.json: No such file or directory"
    assert problems[1].startswith("not valid JSON")


def test_sync_pricing__one_running__command_error() -> None:
    PriceSyncLog.objects.create(trigger="api", started_at=timezone.now())
    with pytest.raises(CommandError, match="being synced"):
        run()


def test_task__by_beat__syncs_and_leaves_a_running_one_alone(server: CatalogServer) -> None:
    server.serve("/a", A)
    server.serve("/b", B)
    sync_pricing()
    assert len(price_table()) == 3
    assert PriceSyncLog.objects.get().trigger == "schedule"
    PriceSyncLog.objects.update(status="running")
    sync_pricing()
    assert PriceSyncLog.objects.count() == 1


def test_schedule__its_task__is_known() -> None:
    assert settings.CELERY_BEAT_SCHEDULE["sync-pricing"]["task"] == sync_pricing.name
    assert sync_pricing.name in current_app.tasks


def test_command__sync__is_in_the_audit_log_once_with_its_numbers(server: CatalogServer) -> None:
    server.serve("/a", A, etag='"a1"')
    server.serve("/b", B, etag='"b1"')
    run()
    run()

    [entry] = AuditEntry.objects.filter(operation="sync_pricing")
    assert (entry.actor_kind, entry.object_kind, entry.project_id) == ("command", "price list", None)
    assert entry.object_id == str(PriceSyncLog.objects.order_by("pk")[0].pk)
    assert entry.changes["added"][0] is None and entry.changes["added"][1] >= 2
