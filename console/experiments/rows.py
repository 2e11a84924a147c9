from __future__ import annotations

from typing import Any

from django.utils.safestring import SafeString

from core.ui.formats import NONE, moment
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from gateway.experiments.candidates import candidates_of
from gateway.experiments.selectors import experiments_with
from gateway.models import Experiment

_MAX_ROWS = 20
_KINDS = {"passed": "good", "worse": "bad", "undecided": "warn"}


def verdict_mark(verdict: str) -> SafeString | str:
    return status(verdict, _KINDS.get(verdict, "neutral")) if verdict else NONE


def columns_of(visit: Visit) -> list[Column]:
    return [
        Column("name", "Experiment", lambda row: row.name or "without a name"),
        Column("state", "State", lambda row: status(row.state)),
        Column("verdict", "Verdict", lambda row: verdict_mark(row.verdict)),
        Column("dataset", "Data set", lambda row: _dataset(visit, row), gives_way=True),
        Column("candidates", "Candidates", _candidates),
    ]


def used_in(visit: Visit, **which: Any) -> Table:
    """`which` are the arguments of `experiments_with`."""
    rows = list(experiments_with(visit.project.pk, **which)[:_MAX_ROWS])
    link = visit.link_if_there("experiment_form", **_form_of(which))
    return Table(
        caption=f"Experiments that used it, the newest {_MAX_ROWS}",
        columns=[
            *columns_of(visit),
            Column("gone", "Items gone since", gone_in_words),
            Column("created", "Made", lambda row: moment(row.created_at)),
        ],
        rows=rows,
        empty=Empty("No experiment used it yet.", link, "Begin one" if link else ""),
        key=lambda row: visit.link("experiment", row.pk),
    )


def gone_in_words(row: Experiment) -> str:
    parts = [
        f"{count:,} {words}"
        for count, words in ((row.erased_items, "erased"), (row.expired_items, "past retention"))
        if count
    ]
    return ", ".join(parts) or "none"


def _form_of(which: dict[str, Any]) -> dict[str, Any]:
    names = {"dataset_id": "dataset", "evaluator_id": "evaluator"}
    return {names[name]: value for name, value in which.items()}


def _dataset(visit: Visit, row: Experiment) -> SafeString | str:
    if row.is_shadow:
        return "live requests, of a rollout's shadow"
    if row.dataset_id is None:
        return "past requests"
    name, version = f"{row.dataset_name}, version {row.dataset_version}", row.dataset_version
    shown: SafeString | str = visit.linked(name, "dataset", visit.project.pk, row.dataset_id, version=version)
    return shown


def _candidates(row: Experiment) -> str:
    return "; ".join(f"{candidate.label}: {candidate.title}" for candidate in candidates_of(row.candidates))
