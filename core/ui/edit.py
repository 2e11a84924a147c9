from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

from django import forms
from django.http import Http404
from django.http.response import HttpResponseBase

from core.errors import ApplicationError, ValidationError
from core.roles import Right
from core.ui.forms import refuse
from core.ui.pages import Page, Visit
from core.ui.tables import Table

# The type of the record, `Team | None` on a page that also makes new ones.
Record = TypeVar("Record")
Form = TypeVar("Form", bound=forms.BaseForm)

# A number of more digits may be larger than any that the databases take.
_ID_DIGITS = 18


def whole_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _ID_DIGITS):
        raise ValueError("a whole number is expected")
    return int(text)


def _unknown(visit: Visit, record: Any) -> HttpResponseBase:
    raise ValidationError("There is no such action.")


class EditPage(Page, Generic[Record, Form]):
    """A page with a form that saves a record, and with buttons for it.

    The sent field `action` decides: one of `saves` saves the form, another, such as `remove`, calls `do_remove(visit,
    record)`. Both return the next page, mostly by `Visit.done`. The form shows the application's errors of saving, the
    page those of another action.

    The template `ui/edit.html` shows `table` above the form, with the words of this class.
    """

    template: ClassVar[str] = "ui/edit.html"
    # What a person needs to change anything, if the page itself asks for less.
    right: ClassVar[Right | None] = None
    # The parameter of the address that names the record; empty where the path names it, or where there is none.
    key: ClassVar[str] = ""
    saves: ClassVar[tuple[str, ...]] = ("", "save")
    # The form, if it takes the record and what was sent; a page without one has its own `form`, or nothing to save.
    form_class: ClassVar[Any] = None
    # The field that an error of this code belongs to; of the empty code, those that name no field.
    fields_of_codes: ClassVar[Mapping[str, str]] = {}

    # The words of the template: above all, the heading of the form for a new record, its button, the link that leads
    # back to that form, the button that removes a record, and what follows from that.
    about: ClassVar[str] = ""
    new: ClassVar[str] = "New"
    submit: ClassVar[str] = "Save"
    instead: ClassVar[str] = ""
    remove: ClassVar[str] = "Remove"
    removal: ClassVar[str] = ""

    def __init__(self) -> None:
        # What the path names. A page is made for one request.
        self._route: Mapping[str, Any] = {}

    def find(self, visit: Visit, given: str) -> Record:
        raise NotImplementedError

    def record(self, visit: Visit, **route: Any) -> Record:
        given = visit.request.GET.get(self.key, "") if self.key else ""
        try:
            return self.find(visit, given) if given else cast("Record", None)
        except ValueError:
            raise Http404("There is no such record.") from None

    def form(self, visit: Visit, record: Record, data: Any = None) -> Form:
        made: Form = self.form_class and self.form_class(record, data)
        return made

    def save(self, visit: Visit, record: Record, form: Form) -> HttpResponseBase:
        raise NotImplementedError

    def table(self, visit: Visit) -> Table | None:
        return None

    def shown(self, visit: Visit, record: Record, form: Form) -> Mapping[str, Any]:
        return {}

    def address(self, visit: Visit, record: Record) -> str:
        if self.key:
            return visit.link(self.name, **{self.key: getattr(record, "pk", "")})
        return visit.link(self.name, *self._route.values())

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        record = self.record(visit, **route)
        return self._context(visit, record, self.form(visit, record))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        if self.right is not None:
            visit.require(self.right)
        self._route = route
        record, action = self.record(visit, **route), visit.request.POST.get("action", "")
        if action in self.saves or (self.key and record is None):
            return self._save(visit, record)
        try:
            done: HttpResponseBase = getattr(self, f"do_{action.replace('-', '_')}", _unknown)(visit, record)
        except ApplicationError as error:
            return self.fail(visit, record, error)
        return done

    def fail(self, visit: Visit, record: Record, error: ApplicationError) -> HttpResponseBase:
        return visit.failed(error.message, self.address(visit, record))

    def again(self, visit: Visit, record: Record, form: Form, **more: Any) -> HttpResponseBase:
        panels = self.panels(visit, **self._route)
        return self.render(visit, panels, **{**self._context(visit, record, form), **more})

    def refuse(self, form: Form, error: ApplicationError) -> None:
        refuse(form, error, self.fields_of_codes)

    def _save(self, visit: Visit, record: Record) -> HttpResponseBase:
        form = self.form(visit, record, visit.request.POST)
        if form.is_valid():
            try:
                return self.save(visit, record, form)
            except ApplicationError as error:
                self.refuse(form, error)
        return self.again(visit, record, form)

    def _context(self, visit: Visit, record: Record, form: Form) -> dict[str, Any]:
        may_change = self.right is None or visit.may(self.right)
        return {
            "record": record,
            "form": form if may_change else None,
            "may_change": may_change,
            "table": self.table(visit),
            "list_address": visit.link(self.name if self.key else self.parent or self.name),
            **self.shown(visit, record, form),
        }
