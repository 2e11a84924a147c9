from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from analytics.parameters.ranges import TimeRange
from analytics.presenters.providers import failovers
from core.ui import formats
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from core.wire.pagination import Page as ListPage
from integrations.access.deployments import title_of

MAX_ROWS = 50
_MAX_PAIRS = 1_000


def failovers_context(visit: Visit, shown: TimeRange) -> dict[str, Any]:
    found = failovers(visit.project.pk, shown, ListPage(_MAX_PAIRS, 0))
    counts = Counter[tuple[str, str]]()
    for row in found.results:
        counts[_place(row, "from"), _place(row, "to")] += row["request_count"]
    return {
        "total": found.more["total_failovers"],
        "left_out": max(0, found.count - MAX_ROWS),
        "matrix": _matrix(counts),
        "table": Table(
            caption="From one model to the next, the most frequent first",
            columns=_columns(),
            rows=found.results[:MAX_ROWS],
            empty=Empty("No request went on to another model or provider in this range."),
        ),
    }


def _matrix(counts: Counter[tuple[str, str]]) -> dict[str, Any]:
    to_providers = sorted({to_provider for _, to_provider in counts})
    return {
        "columns": to_providers,
        "rows": [
            {
                "provider": source,
                "cells": [(target, counts[source, target]) for target in to_providers],
                "total": sum(counts[source, target] for target in to_providers),
            }
            for source in sorted({from_provider for from_provider, _ in counts})
        ],
    }


def _place(row: Mapping[str, Any], side: str) -> str:
    return title_of(row[f"{side}_provider"], row[f"{side}_deployment"])


def _columns() -> list[Column]:
    def pair(row: Mapping[str, Any], side: str) -> str:
        return f"{_place(row, side)}/{row[f'{side}_model']}"

    return [
        Column("from", "From", lambda row: pair(row, "from")),
        Column("to", "To", lambda row: pair(row, "to")),
        Column("error", "After", lambda row: row["error"] or formats.NONE),
        Column("requests", "Requests", lambda row: formats.number(row["request_count"]), is_numeric=True),
        Column(
            "served",
            "Then served",
            lambda row: formats.share(row["served_count"] / row["request_count"]),
            is_numeric=True,
        ),
        Column("last", "Last", lambda row: formats.moment(row["last_seen"])),
    ]
