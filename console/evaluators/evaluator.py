"""The page of one evaluator: what it does, the form of the next version with the dry run beside it, all versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
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
from core.errors import ApplicationError, NotFoundError, ValidationError
from core.roles import Right
from core.ui.formats import moment
from core.ui.forms import refuse
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link, page_number

_PER_PAGE = 20


@register_page
class EvaluatorPage(Page):
    """`version` in the address shows an earlier version, which may be saved as the next one."""

    route = "evaluators/<uuid:evaluator_id>/"
    name = "evaluator"
    title = "Evaluator"
    template = "evaluators/evaluator.html"
    parent = "evaluators"
    methods = ("GET", "HEAD", "POST")

    def project_id(self, **route: Any) -> UUID | None:
        found = Evaluator.objects.filter(pk=route["evaluator_id"]).values_list("project_id", flat=True).first()
        if found is None:
            raise Http404("There is no such evaluator.")
        return found

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        version = _version(visit, route["evaluator_id"])
        return _shown(visit, version, _form_of(version), None)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [calibration_panel(visit, _version(visit, route["evaluator_id"]))]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        version, given = _version(visit, route["evaluator_id"]), visit.request.POST.dict()
        change = _CHANGES.get(given.get("action", ""))
        if change is None:
            return self._edit(visit, version, given)
        named = NameForm(given) if given["action"] == "rename" else None
        try:
            change(visit, version, named)
        except ApplicationError as error:
            if named is None:
                messages.error(visit.request, error.message)
            else:
                shown = _shown(visit, version, _form_of(version), _refused(named, error))
                return self.render(visit, [calibration_panel(visit, version)], **shown)
        return HttpResponseRedirect(visit.link(self.name, version.evaluator_id))

    def _edit(self, visit: Visit, version: KnownVersion, given: Mapping[str, Any]) -> HttpResponseBase:
        """Saves the next version, or shows the form again with the dry run or with more rows."""
        form = kind_form(version.definition.kind, given)
        if given.get("action") == "save" and form.is_valid():
            try:
                _save(visit, version, form)
            except ApplicationError as error:
                form.refuse(error)
            else:
                return HttpResponseRedirect(visit.link(self.name, version.evaluator_id))
        return self.render(visit, [calibration_panel(visit, version)], **_shown(visit, version, form, None))


def _version(visit: Visit, evaluator_id: UUID) -> KnownVersion:
    """Returns the version that the address names, else the newest. Raises Http404."""
    text = visit.request.GET.get("version", "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None
    try:
        return get_version(visit.project.pk, evaluator_id, number)
    except NotFoundError as error:
        raise Http404(error.message) from None


def _form_of(version: KnownVersion) -> KindForm:
    definition = version.definition
    return kind_form(definition.kind, definition=stored_form(definition), good_from=version.good_from)


def _save(visit: Visit, version: KnownVersion, form: KindForm) -> None:
    new = NewVersion(form.definition(), form.cleaned_data["good_from"])
    saved = add_version(project_id=visit.project.pk, evaluator_id=version.evaluator_id, new=new, actor=visit.actor)
    messages.success(visit.request, f"{version.name} is at version {saved.number}. Earlier scores keep their version.")


def _shown(visit: Visit, version: KnownVersion, form: KindForm, named: NameForm | None) -> dict[str, Any]:
    row: Any = list_evaluators(visit.project.pk).get(pk=version.evaluator_id)
    newest, may_edit = row.newest, visit.may(Right.EDIT)
    renamed = named or NameForm(initial={"name": row.name, "description": row.description})
    return {
        "title": row.name,
        "evaluator": row,
        "mark": status(row.state),
        "version": version,
        "newest": newest,
        "is_newest": version.number == newest,
        "is_active": row.state == EvaluatorState.ACTIVE,
        **_words(version),
        **(editor_context(visit, row.kind, form) if may_edit else {}),
        "may_edit": may_edit,
        "editor_title": f"From version {version.number} to the next",
        "save_label": f"Save as version {newest + 1}",
        "form_address": visit.link("evaluator", row.pk, version="" if version.number == newest else version.number),
        "renamed": renamed,
        "is_refused": named is not None,
        "versions": _versions(visit, row),
        "experiments": used_in(visit, evaluator_id=row.pk),
    }


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
    number, query = page_number(visit.request.GET), visit.request.GET
    versions, first = row.versions.order_by("-number"), (number - 1) * _PER_PAGE
    shown, count = versions.select_related("evaluator")[first : first + _PER_PAGE], versions.count()
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
        query=query,
        key=lambda one: visit.link("evaluator", row.pk, version=one[0].number),
        count=count,
        next_url=page_link(query, p=str(number + 1)) if first + _PER_PAGE < count else "",
        previous_url=page_link(query, p=str(number - 1)) if number > 1 else "",
    )


def _refused(named: NameForm, error: ApplicationError) -> NameForm:
    """Shows the API's error in the form, unless the form has errors of its own."""
    if named.is_valid():
        refuse(named, error)
    return named


def _rename(visit: Visit, version: KnownVersion, named: NameForm | None) -> None:
    if named is None or not named.is_valid():
        raise ValidationError("A name is needed.")
    _change(visit, version, named.cleaned_data)
    messages.success(visit.request, f"{named.cleaned_data['name']}: saved.")


def _archive(visit: Visit, version: KnownVersion, named: NameForm | None) -> None:
    _change(visit, version, {"state": EvaluatorState.ARCHIVED})
    messages.success(visit.request, f"{version.name} is archived: it scores nothing new, and its scores stay.")


def _restore(visit: Visit, version: KnownVersion, named: NameForm | None) -> None:
    _change(visit, version, {"state": EvaluatorState.ACTIVE})
    messages.success(visit.request, f"{version.name} is active again.")


def _change(visit: Visit, version: KnownVersion, values: Mapping[str, Any]) -> None:
    change_evaluator(project_id=visit.project.pk, evaluator_id=version.evaluator_id, values=values)


_CHANGES: Mapping[str, Callable[[Visit, KnownVersion, NameForm | None], None]] = {
    "rename": _rename,
    "archive": _archive,
    "restore": _restore,
}
