"""Sums up the requests that prompt configs, or their versions, served in a range of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.range_totals import SUMS, SumsRow
from analytics.queries.rollup_ranges import PLANNED, SPEND_HOURS, Key, same, totals, union


class PromptGrouping(StrEnum):
    CONFIG = "config"
    VERSION = "version"


@dataclass(frozen=True)
class PromptFiguresRow(SumsRow):
    """The requests of one version of a config; `prompt_version` is 0 for all versions together."""

    prompt_config_id: UUID
    prompt_version: int


_VERSION = {
    PromptGrouping.CONFIG: Key("toUInt32(0)", "toUInt32(0)"),
    PromptGrouping.VERSION: same("t.prompt_version"),
}


def list_prompt_figures(
    project_id: UUID,
    start: datetime,
    end: datetime,
    grouping: PromptGrouping,
    *,
    prompt_config_id: UUID | None = None,
) -> Sequence[PromptFiguresRow]:
    """Returns the groups that served a request, by falling requests, then falling cost, then config and version. A
    request that named a config and got no version of it does not count."""
    where, params = "t.prompt_version > 0", {}
    if prompt_config_id is not None:
        where, params = f"{where} AND t.prompt_config_id = {{config:UUID}}", {"config": prompt_config_id}
    keys = {"prompt_config_id": same("t.prompt_config_id"), "prompt_version": _VERSION[grouping]}
    # The rollup by minute knows prompts as well, and has a row for each minute of each model.
    source, more = union([SPEND_HOURS], start, end, keys=keys, figures=SUMS, where=where)
    sql = (
        "SELECT f.prompt_config_id AS prompt_config_id, f.prompt_version AS prompt_version,"
        f" {totals(*SUMS)} FROM {source} AS f GROUP BY f.prompt_config_id, f.prompt_version"
        " ORDER BY requests DESC, cost_usd DESC, prompt_config_id, prompt_version"
    )
    values = {**params, **more, "project": project_id}
    return client.query(sql, values, row=PromptFiguresRow, name="prompts.figures", database_settings=PLANNED)
