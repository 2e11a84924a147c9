"""The migrations that are made of the declared columns of the request log."""

from __future__ import annotations

from typing import Annotated

import pytest

from analytics.clickhouse import log_columns, migrator
from analytics.clickhouse.log_columns import LogColumn, later_columns
from analytics.request_log.record import RequestRecord
from analytics.request_log.types import Name, PersonalText, Since
from tests.analytics.upgrades import REGION

_SCHEMA = migrator.written_migrations()[0].text


class _Later(RequestRecord, frozen=True, kw_only=True):
    note: Annotated[PersonalText, Since(9061)] = ""
    region: Annotated[Name, Since(9060)] = ""


def test_later_columns__two_declared__by_number_with_type_and_whether_they_are_kept() -> None:
    own = {column.number for column in later_columns()}

    found = [column for column in later_columns(_Later) if column.number not in own]

    assert found == [
        LogColumn(9060, "region", "LowCardinality(String)", is_kept=True),
        LogColumn(9061, "note", "String", is_kept=False),
    ]


def test_migration__column_of_a_person__leaves_anonymised_requests_alone() -> None:
    text = LogColumn(9061, "note", "String", is_kept=False).migration([_SCHEMA])

    assert "ALTER TABLE requests ADD COLUMN IF NOT EXISTS note String;" in text
    assert "ALTER TABLE ingest ADD COLUMN IF NOT EXISTS note String;" in text
    assert "ALTER TABLE anonymised " not in text
    assert "anonymised_requests_mv" not in text


def test_migration__view_changed_before__keeps_the_last_query() -> None:
    changed = "-- A comment.\nALTER TABLE requests_mv MODIFY QUERY\nSELECT *, 1 AS one\nFROM ingest AS i;\n"

    text = REGION.migration([_SCHEMA, changed, "RENAME TABLE IF EXISTS a TO b;\n"])

    assert "ALTER TABLE requests_mv MODIFY QUERY\nSELECT *, 1 AS one\nFROM ingest AS i;\n" in text
    assert "substringUTF8" not in text
    assert "ALTER TABLE anonymised_requests_mv MODIFY QUERY\nSELECT * EXCEPT had_user FROM anonymised;\n" in text


def test_load_migrations__number_given_twice__is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_columns, "later_columns", lambda: [REGION, REGION])

    with pytest.raises(ValueError, match="the same number"):
        migrator.load_migrations()
