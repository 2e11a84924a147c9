from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from analytics.discussions.selectors import list_assignments, list_comments
from analytics.models import Assignment, Comment
from analytics.models.discussions import Discussed, SubjectKind
from console.discussions.panel import LIST
from core.audit.actors import actor_names
from core.ui.filters import FilterField, Filters
from core.ui.formats import moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table

ANYBODY = "*"

_PER_PAGE = 50
_MAX_PAGE = 1_000
_MAX_MENTIONS = 20
_SHOWN_CHARACTERS = 160
_STATES = (("open", "open"), ("done", "done"), (ANYBODY, "open and done"))
_PAGES = {SubjectKind.REQUEST: "analytics_requests_detail", SubjectKind.SESSION: "session"}


class AssignmentsPage(Page):
    route = "assignments/"
    name = LIST
    title = "Assignments"
    has_range = False

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        person, own = _person(visit), visit.person.get_username()
        fields = [
            FilterField("assignee", "Member", help=f"{ANYBODY} for all"),
            FilterField("state", "State", "choice", _STATES),
        ]
        return {
            "filters": Filters(fields, visit.request.GET),
            "subtitle": "everybody's" if not person else "yours" if person == own else f"of {person}",
            "own": visit.link(LIST),
            "everybody": visit.link(LIST, assignee=ANYBODY),
            "is_own": person == own,
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        assigned = Panel.of_table(LIST, "Assigned", lambda: _assigned(visit), is_wide=True)
        if not visit.sees_content:
            return [assigned]
        return [assigned, Panel.of_table("mentions", "Mentioned", lambda: _mentions(visit), is_wide=True)]


def _person(visit: Visit) -> str:
    named: str = visit.request.GET.get("assignee", "").strip()[:150] or visit.person.get_username()
    return "" if named == ANYBODY else named


def _assigned(visit: Visit) -> Table:
    query = visit.request.GET
    state, numbered = query.get("state", ""), Numbered(query, _PER_PAGE, _MAX_PAGE)
    state = "" if state == ANYBODY else state if state in ("open", "done") else "open"
    found = list_assignments(visit.project.pk, assignee=_person(visit), state=state)
    rows = list(found[numbered.rows])
    names = actor_names([row.assigned_by for row in rows])
    return Table(
        caption="Requests and sessions, the latest first",
        columns=[
            Column("subject", "What", cell=_subject),
            Column("state", "State", cell=_state),
            Column("assignee", "Member", cell=lambda row: row.assignee),
            Column("assigned_by", "Assigned by", cell=lambda row: names[row.assigned_by]),
            Column("assigned_at", "Since", cell=lambda row: moment(row.assigned_at)),
        ],
        rows=rows,
        empty=Empty("Nothing is assigned. The page of a request or session assigns it to a member."),
        key=lambda row: _address(visit, row),
        **numbered.links(found.count()),
    )


def _mentions(visit: Visit) -> Table:
    person = _person(visit)
    found = list_comments(visit.project.pk, mentioned=person) if person else list_comments(visit.project.pk)
    rows = list(found[:_MAX_MENTIONS])
    names = actor_names([row.created_by for row in rows])
    return Table(
        caption="The latest comments" + (f" that mention {person}" if person else ""),
        columns=[
            Column("subject", "Of", cell=_subject),
            Column("author", "By", cell=lambda row: names[row.created_by]),
            Column("text", "Comment", cell=_beginning),
            Column("created_at", "Written", cell=lambda row: moment(row.created_at)),
        ],
        rows=rows,
        empty=Empty("No comment mentions this person." if person else "There is no comment yet."),
        key=lambda row: _address(visit, row),
    )


def _subject(row: Discussed) -> SafeString:
    shown = row.subject if len(row.subject) <= 40 else f"{row.subject[:39]}…"
    return format_html('{} <code title="{}">{}</code>', row.kind, row.subject, shown)


def _state(row: Assignment) -> SafeString:
    return status(row.state, "good" if row.state == "done" else "warn")


def _beginning(row: Comment) -> str:
    return row.text if len(row.text) <= _SHOWN_CHARACTERS else f"{row.text[: _SHOWN_CHARACTERS - 1]}…"


def _address(visit: Visit, row: Discussed) -> str:
    address = visit.link_if_there(_PAGES[SubjectKind(row.kind)], visit.project.pk, row.subject)
    return f"{address}#panel-discussion" if address else ""
