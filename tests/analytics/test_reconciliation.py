"""Figures are compared with their requests, and rebuilt where they differ."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command

from analytics.clickhouse import client
from analytics.clickhouse.rollups import Rollup, list_rollups
from analytics.errors import AnalyticsUnavailableError, RepairBusyError
from analytics.reconciliation import rebuilding, services
from analytics.reconciliation.leases import repair_lease
from analytics.reconciliation.services import reconcile
from analytics.reconciliation.units import Unit, in_portions, list_units
from tests.analytics.reconciling import _microseconds, content_of, damage_unit, entries_of, raw_rows, rollup_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.night import cases

pytestmark = pytest.mark.django_db

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC).date()


@pytest.fixture
def project(clickhouse: None, spool: Path) -> UUID:
    """300 requests of 6 days, the last the day before yesterday, since yesterday is not closed soon after midnight."""
    project_id = make_project().pk
    store(spool, *entries_of(project_id, 300, spread_days=6))
    return project_id


def test_rollups__after_shipping__equal_their_requests(project: UUID) -> None:
    report = reconcile([project])

    assert report.units == 6
    assert report.differences == []
    assert report.remaining == 0


def test_rollups__known__are_all_that_hold_figures(clickhouse: None) -> None:
    """Rollups are recognised by engine and name of the view, so that a new one need not be named anywhere. The words of
    texts are counted too, but cannot be had from the requests. Those of late ones have their text in a second view."""
    texts = {rollup.table: rollup.select for rollup in list_rollups()}
    tables = set(texts)
    views = client.execute(
        "SELECT name, as_select FROM system.tables WHERE database = currentDatabase() AND engine = 'MaterializedView'"
        " AND as_select LIKE '%GROUP BY%' AND as_select LIKE '%ingest%'"
    )

    assert {"requests_minute", "requests_hourly", "requests_daily", "users_daily"} <= tables
    filling = {name.removesuffix("_mv").removesuffix("_figures"): text for name, text in views}
    del filling["vocabulary"]
    assert {table: text.replace("ingest_figures", "ingest") for table, text in filling.items()} == texts


def test_rollups__made_again_from_requests__equal_what_the_view_made(project: UUID) -> None:
    """Every column is rebuilt, states of percentiles included, from unmerged and from merged parts."""
    every = list_units(project, LONG_AGO)
    units = cases(every, by_day=every[:2])
    for rollup in list_rollups():
        before = content_of(rollup, project)
        for unit in units:
            damage_unit(rollup, project, "DELETE", unit)
            assert rebuilding.rebuild(rollup, project, unit)

        assert before
        assert content_of(rollup, project) == before, rollup.table


@pytest.mark.parametrize("damage", ["DELETE", "DOUBLE", "OTHER KEY"])
def test_rollups__damaged_in_any_way__are_made_again(project: UUID, damage: str) -> None:
    unit = list_units(project, LONG_AGO)[2]
    damaged = [rollup for rollup in list_rollups() if damage_unit(rollup, project, damage, unit)]

    looked_at = reconcile([project], dry_run=True)
    repaired = reconcile([project])
    afterwards = reconcile([project])

    assert {found.table for found in looked_at.differences} == {rollup.table for rollup in damaged}
    assert looked_at.remaining == len(damaged)
    assert {found.days for found in repaired.differences} == {str(unit.first)}
    assert repaired.remaining == 0
    assert afterwards.differences == []


def test_reconcile__another_project_of_the_same_days__keeps_its_rows(project: UUID, spool: Path) -> None:
    other = make_project().pk
    store(spool, *entries_of(other, 50, spread_days=6))
    before = {rollup.table: content_of(rollup, other) for rollup in list_rollups()}
    for rollup in list_rollups():
        damage_unit(rollup, project, "DELETE", list_units(project, LONG_AGO)[1])

    reconcile([project])

    assert {rollup.table: content_of(rollup, other) for rollup in list_rollups()} == before


def test_reconcile__figures_of_no_request__are_removed(project: UUID) -> None:
    unit = list_units(project, LONG_AGO)[1]
    client.execute(
        "DELETE FROM requests WHERE project_id = {project:UUID} AND drop_date = {day:Date}",
        {"project": project, "day": unit.day.isoformat()},
    )

    assert reconcile([project], days=30).differences == []
    report = reconcile([project])

    assert {found.table for found in report.differences} == {rollup.table for rollup in list_rollups()}
    assert report.remaining == 0
    assert reconcile([project]).differences == []


def test_day__that_is_not_over__with_a_shorter_retention_than_before__is_left_alone(project: UUID, spool: Path) -> None:
    store(spool, make_entry(project_id=str(project), retention_days=300))
    before = content_of(rollup_of("requests_daily"), project)

    assert reconcile([project]).differences == []
    assert content_of(rollup_of("requests_daily"), project) == before


@pytest.mark.parametrize("merged", [False, True])
def test_requests__stored_twice__are_there_once_again(project: UUID, merged: bool) -> None:
    """The duplicates are those of an upgrade that made tables anew, with a batch in flight, which is also counted twice
    in some rollups."""
    before = {rollup.table: content_of(rollup, project) for rollup in list_rollups()}
    rows = raw_rows(project)
    some = "project_id = {project:UUID} AND cityHash64(request_id) % 4 = 0"
    options = {"insert_deduplicate": 0}
    for table in ("requests", "payloads"):
        again = f"INSERT INTO {table} SELECT * FROM {table} WHERE {some}"  # noqa: S608
        client.execute(again, {"project": project}, settings=options)
        if merged:
            client.execute(f"OPTIMIZE TABLE {table} FINAL")
    damage_unit(rollup_of("users_daily"), project, "DOUBLE", list_units(project, LONG_AGO)[0])

    assert reconcile([project], dry_run=True).remaining > 12
    assert reconcile([project]).remaining == 0

    assert raw_rows(project) == rows
    assert {rollup.table: content_of(rollup, project) for rollup in list_rollups()} == before
    assert reconcile([project]).differences == []


def test_reconcile__all_projects__finds_them_by_their_requests(project: UUID) -> None:
    assert reconcile().units == 6


def test_reconcile__few_days__leaves_out_what_is_older(project: UUID) -> None:
    unit = list_units(project, LONG_AGO)[0]
    damage_unit(rollup_of("requests_daily"), project, "DELETE", unit)

    assert reconcile([project], days=2).differences == []
    assert len(reconcile([project], days=30).differences) == 1


def test_day__that_is_not_over__is_left_alone(clickhouse: None, spool: Path) -> None:
    project, now = make_project().pk, datetime.now(UTC)
    store(spool, *(make_entry(project_id=str(project), ts=int(now.timestamp() * 1e6)) for _ in range(5)))
    [unit] = list_units(project, LONG_AGO)
    damage_unit(rollup_of("requests_daily"), project, "DELETE", unit)

    assert reconcile([project]).units == 0
    tomorrow = now + timedelta(days=1)
    assert reconcile([project], now=tomorrow.replace(hour=0, minute=59)).units == 0
    assert len(reconcile([project], now=tomorrow.replace(hour=1, minute=0)).differences) == 1


def test_rebuild__record_arrives_between_the_steps__is_counted_once(
    project: UUID, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = list_units(project, LONG_AGO)[3]
    late = iter(
        make_entry(project_id=str(project), ts=_microseconds(unit, hour), session_id="late", user_id="late")
        for hour in (23, 1, 12, 23)
    )
    rollup = rollup_of("users_daily")
    damage_unit(rollup, project, "DELETE", unit)
    execute = client.execute

    def with_arrival(sql: str, *arguments: Any, **options: Any) -> Any:
        answer = execute(sql, *arguments, **options)
        if (sql.startswith(("DELETE", "INSERT"))) and (entry := next(late, None)):
            store(spool, entry)
        return answer

    monkeypatch.setattr(client, "execute", with_arrival)
    assert rebuilding.rebuild(rollup, project, unit)
    monkeypatch.undo()

    assert next(late, None) is None
    assert reconcile([project]).differences == []
    counted = client.execute(
        "SELECT sum(requests) FROM users_daily WHERE project_id = {project:UUID} AND user_id = 'late'",
        {"project": project},
    )
    assert counted == [(4,)]


def test_reconcile__broken_off_between_deleting_and_inserting__is_healed_by_the_next(
    project: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = list_units(project, LONG_AGO)[4]
    rollup = rollup_of("requests_hourly")
    damage_unit(rollup, project, "DOUBLE", unit)
    execute = client.execute

    def away(sql: str, *arguments: Any, **options: Any) -> Any:
        if sql.startswith("INSERT"):
            raise AnalyticsUnavailableError("away")
        return execute(sql, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(client, "execute", away)
        with pytest.raises(AnalyticsUnavailableError):
            reconcile([project])

    assert reconcile([project]).remaining == 0
    assert reconcile([project]).differences == []


def test_statements__of_a_rebuild__are_bounded(project: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[dict[str, Any]] = []
    execute = client.execute

    def noting(sql: str, params: Any = None, settings: Any = None, **options: Any) -> Any:
        used.append(settings)
        return execute(sql, params, settings, **options)

    monkeypatch.setattr(client, "execute", noting)
    rebuilding.rebuild(rollup_of("users_daily"), project, list_units(project, LONG_AGO)[0])
    damage_unit(rollup_of("users_daily"), project, "DOUBLE", list_units(project, LONG_AGO)[0], execute=execute)
    rebuilding.rebuild(rollup_of("users_daily"), project, list_units(project, LONG_AGO)[0])

    assert len(used) == 2
    assert all(limits["max_memory_usage"] < 200 * 1024 * 1024 for limits in used)


def test_portions__hold_at_most_so_many_requests() -> None:
    days = [datetime(2026, 1, number, tzinfo=UTC).date() for number in range(1, 7)]
    units = [Unit(day, day, day, requests) for day, requests in zip(days, [5, 5, 30, 1, 9, 1], strict=True)]

    portions = [[unit.requests for unit in portion] for portion in in_portions(units, max_requests=10)]

    assert portions == [[5, 5], [30], [1, 9], [1]]
    assert list(in_portions([], max_requests=10)) == []


def test_lease__held_by_another__is_refused_in_words() -> None:
    project = uuid4()
    with repair_lease(project), pytest.raises(RepairBusyError), repair_lease(project, wait_seconds=0):
        pass
    with repair_lease(project, wait_seconds=0), repair_lease(uuid4(), wait_seconds=0):
        pass


class TestCommand:
    def test_nothing_differs__says_so(self, project: UUID) -> None:
        assert "6 days compared, 0 differed, 0 still do" in self.run(project=str(project))

    def test_difference__is_named_and_repaired(self, project: UUID) -> None:
        unit = list_units(project, LONG_AGO)[0]
        damage_unit(rollup_of("requests_minute"), project, "DOUBLE", unit)

        output = self.run(project=str(project))

        assert f"repaired requests_minute project={project} days={unit.first}" in output

    def test_dry_run__fails_where_something_differs(self, project: UUID) -> None:
        damage_unit(rollup_of("requests_minute"), project, "DELETE", list_units(project, LONG_AGO)[0])

        with pytest.raises(CommandError, match="differ"):
            self.run(dry_run=True)

    @pytest.mark.parametrize(
        ("options", "message"), [({"days": 0}, "--days"), ({"project": "nobody"}, "There is no project nobody")]
    )
    def test_wrong_option__is_named(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(CommandError, match=message):
            self.run(**options)

    def test_store_away__is_reported(self, project: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
        def away() -> list[Rollup]:
            raise AnalyticsUnavailableError("The analytics store does not answer.")

        monkeypatch.setattr(services, "list_rollups", away)
        with pytest.raises(CommandError, match="does not answer"):
            self.run()

    def run(self, **options: Any) -> str:
        out = io.StringIO()
        call_command("reconcile_rollups", stdout=out, **options)
        return out.getvalue()
