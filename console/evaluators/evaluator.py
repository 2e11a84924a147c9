from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.http.response import HttpResponseBase

from analytics.evaluators.definitions import JsonSchema, Judge, stored_form
from analytics.evaluators.selectors import KnownVersion, get_version, known_version, list_evaluators
from analytics.evaluators.services import NewVersion, add_version, change_evaluator
from analytics.models import Evaluator
from analytics.models.evaluators import EvaluatorState
from console.evaluators.calibration import calibration_panel
from console.evaluators.editor import NameForm, editor_context
from console.evaluators.kinds import KIND_TITLES, KindForm, kind_form
from console.evaluators.words import in_words
from console.experiments.rows import used_in
from core.audit.actors import actor_names
from core.errors import ApplicationError
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import moment
from core.ui.forms import saved
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table

_PER_PAGE = 20


class EvaluatorPage(EditPage[KnownVersion, KindForm]):
    """`version` in the address shows an earlier version, which can be saved as the next one."""

    route = "evaluators/<uuid:evaluator_id>/"
    name = "evaluator"
    title = "Evaluator"
    parent = "evaluators"
    model = Evaluator
    right = Right.EDIT
    saves = ("save",)

    def record(self, visit: Visit, **route: Any) -> KnownVersion:
        """Returns the version that the address names, else the newest. Raises NotFoundError."""
        text = visit.request.GET.get("version", "")
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None
        return get_version(visit.project.pk, route["evaluator_id"], number)

    def form(self, visit: Visit, record: KnownVersion, data: Any = None) -> KindForm:
        definition = record.definition
        if data is not None:
            return kind_form(definition.kind, data.dict())
        return kind_form(definition.kind, definition=stored_form(definition), good_from=record.good_from)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [calibration_panel(visit, self.record(visit, **route))]

    def save(self, visit: Visit, record: KnownVersion, form: KindForm) -> HttpResponseBase:
        new = NewVersion(form.definition(), form.cleaned_data["good_from"])
        made = add_version(project_id=visit.project.pk, evaluator_id=record.evaluator_id, new=new, actor=visit.actor)
        said = f"{record.name} is at version {made.number}. Earlier scores keep their version."
        return visit.done(said, self.address(visit, record))

    def refuse(self, form: KindForm, error: ApplicationError) -> None:
        form.refuse(error)

    def shown(self, visit: Visit, record: KnownVersion, form: KindForm) -> Mapping[str, Any]:
        row: Any = list_evaluators(visit.project.pk).get(pk=record.evaluator_id)
        newest = row.newest
        return {
            "title": row.name,
            "evaluator": row,
            "mark": status(row.state),
            "version": record,
            "newest": newest,
            "is_newest": record.number == newest,
            "is_active": row.state == EvaluatorState.ACTIVE,
            **_words(record),
            **(editor_context(visit, row.kind, form) if visit.may(Right.EDIT) else {}),
            "editor_title": f"From version {record.number} to the next",
            "save_label": f"Save as version {newest + 1}",
            "form_address": visit.link("evaluator", row.pk, version="" if record.number == newest else record.number),
            "renamed": NameForm(initial={"name": row.name, "description": row.description}),
            "versions": _versions(visit, row),
            "experiments": used_in(visit, evaluator_id=row.pk),
        }

    def do_try(self, visit: Visit, record: KnownVersion) -> HttpResponseBase:
        return self.again(visit, record, self.form(visit, record, visit.request.POST))

    do_more = do_try

    def do_rename(self, visit: Visit, record: KnownVersion) -> HttpResponseBase:
        named = NameForm(visit.request.POST)
        if saved(named, lambda: _change(visit, record, named.cleaned_data)) is None:
            return self.again(visit, record, self.form(visit, record), renamed=named, is_refused=True)
        return visit.done(f"{named.cleaned_data['name']}: saved.", self.address(visit, record))

    def do_archive(self, visit: Visit, record: KnownVersion) -> HttpResponseBase:
        _change(visit, record, {"state": EvaluatorState.ARCHIVED})
        said = f"{record.name} is archived: it scores nothing new, and its scores stay."
        return visit.done(said, self.address(visit, record))

    def do_restore(self, visit: Visit, record: KnownVersion) -> HttpResponseBase:
        _change(visit, record, {"state": EvaluatorState.ACTIVE})
        return visit.done(f"{record.name} is active again.", self.address(visit, record))


def _change(visit: Visit, version: KnownVersion, values: Mapping[str, Any]) -> Evaluator:
    return change_evaluator(project_id=visit.project.pk, evaluator_id=version.evaluator_id, values=values)


def _words(version: KnownVersion) -> dict[str, Any]:
    definition = version.definition
    return {
        "words": in_words(definition),
        "kind_title": KIND_TITLES[definition.kind],
        "asks_a_model": definition.asks_a_model,
        "needs_expected": definition.needs_expected,
        "criteria": definition.criteria if isinstance(definition, Judge) else (),
        "schema": json.dumps(definition.schema, indent=2, ensure_ascii=False)
        if isinstance(definition, JsonSchema) and definition.schema is not None
        else "",
    }


def _versions(visit: Visit, row: Evaluator) -> Table:
    numbered, versions = Numbered(visit.request.GET, _PER_PAGE), row.versions.order_by("-number")
    shown = versions.select_related("evaluator")[numbered.rows]
    rows = [(version, known_version(version)) for version in shown]
    names = actor_names(version.created_by for version, _ in rows)
    return Table(
        caption=f"Versions of {row.name}, the newest first",
        columns=[
            Column("number", "Version", lambda one: one[0].number),
            Column("words", "What it does", lambda one: in_words(one[1].definition)),
            Column("good_from", "Good from", lambda one: f"{one[0].good_from:g}", is_numeric=True),
            Column("by", "Made by", lambda one: names[one[0].created_by]),
            Column("created", "Made", lambda one: moment(one[0].created_at)),
        ],
        rows=rows,
        empty=Empty("No more versions."),
        key=lambda one: visit.link("evaluator", row.pk, version=one[0].number),
        **numbered.links(versions.count()),
    )
