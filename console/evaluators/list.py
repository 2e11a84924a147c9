from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.evaluators.definitions import KINDS
from analytics.evaluators.selectors import list_evaluators
from analytics.models.evaluators import EvaluatorState
from console.evaluators.kinds import KIND_TITLES
from core.audit.actors import actor_names
from core.roles import Right
from core.ui.formats import moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.tables import Column, Empty, Table

_EMPTY = (
    "No evaluator yet. The first step: say what a good answer is, by a rule or by a judge, and try it on past requests."
)


class EvaluatorsPage(Page):
    """`request_id` in the address names a request to try an evaluator on; the rows' links pass it on."""

    route = "evaluators/"
    name = "evaluators"
    title = "Evaluators"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        request_id = visit.request.GET.get("request_id", "")
        new_address = visit.link_if_there("evaluator_form", request_id=request_id)
        return {"table": _table(visit, request_id, new_address), "new_address": new_address, "request_id": request_id}


def _table(visit: Visit, request_id: str, new_address: str) -> Table:
    rows = sorted(list_evaluators(visit.project.pk), key=lambda row: row.state != EvaluatorState.ACTIVE)
    names = actor_names(row.created_by for row in rows)
    return Table(
        caption="Evaluators, those in use first",
        columns=[
            Column("name", "Evaluator", lambda row: row.name),
            Column("kind", "A good answer", lambda row: KIND_TITLES[row.kind].lower()),
            Column("state", "State", lambda row: status(row.state)),
            Column("version", "Version", lambda row: row.newest, is_numeric=True),
            Column("model", "Asks a model", lambda row: "yes" if KINDS[row.kind].asks_a_model else "no"),
            Column("by", "Made by", lambda row: names[row.created_by]),
            Column("created", "Made", lambda row: moment(row.created_at)),
        ],
        rows=rows,
        empty=Empty(_EMPTY, new_address, "Make the first") if visit.may(Right.EDIT) else Empty(_EMPTY),
        key=lambda row: visit.link("evaluator", row.pk, request_id=request_id),
    )
