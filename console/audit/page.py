from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join

from core.audit.selectors import audit_entries
from core.audit.subjects import kinds
from core.models import AuditEntry
from core.ui.filters import FilterField, Filters
from core.ui.formats import NONE, moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Table, newest_first, page_link

PAGE_ROWS = 50
_MAX_VALUE = 300
_KINDS = {"created": "good", "changed": "neutral", "deleted": "bad"}
_NAMES = ("actor", "operation", "via", "object_kind", "object_id")


class AuditPage(Page):
    route = "audit/"
    name = "audit"
    title = "Audit"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        fields = [
            FilterField("actor", "Who", help="The name or id of a person, a key or a command."),
            FilterField("object_kind", "What", kind="choice", choices=[(kind, kind) for kind in kinds()]),
            FilterField("object_id", "Which one", help="Its id or its name."),
            FilterField("via", "Through", kind="choice", choices=AuditEntry.Via.choices),
            FilterField("operation", "Operation or page"),
        ]
        return {"filters": Filters(fields=fields, query=visit.request.GET)}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("entries", "Changes", lambda: _table(visit), is_wide=True)]


def _table(visit: Visit) -> Table:
    query = visit.request.GET
    within = {"start_date": visit.period.start, "end_date": visit.period.end}
    given = {**{name: query.get(name, "") for name in _NAMES}, **within}
    rows = audit_entries(visit.project.pk, given, of_installation=visit.person.is_superuser)
    page, links = newest_first(rows, query, PAGE_ROWS)
    return Table(
        caption="Changes, the latest first",
        columns=[
            Column("time", "Time", lambda row: moment(row.created_at)),
            Column("who", "Who", lambda row: _who(row, query)),
            Column("action", "How", lambda row: status(row.action, _KINDS.get(row.action, "neutral"))),
            Column("what", "What", lambda row: f"{row.object_kind} {row.object_label}"),
            Column("changes", "Before and after", _changes),
            Column("via", "Through", lambda row: f"{row.get_via_display()}: {row.operation}"),
        ],
        rows=page,
        empty=Empty(f"Nobody changed anything that fits: {visit.period.label.lower()}."),
        **links,
    )


def _who(row: AuditEntry, query: Any) -> Any:
    href = page_link(query, actor=row.actor_name, cursor="")
    kind = "" if row.actor_kind == "user" else f" ({row.actor_kind})"
    return format_html('<span><a href="{}">{}</a>{}</span>', href, row.actor_name, kind)


def _changes(row: AuditEntry) -> Any:
    pairs = [(name.replace("_", " "), _text(old), _text(new)) for name, (old, new) in row.changes.items()]
    if not pairs:
        return ""
    listed = format_html_join("", "<dt>{}</dt><dd>{} → {}</dd>", pairs)
    if len(pairs) == 1:
        return format_html('<dl class="figures">{}</dl>', listed)
    return format_html('<details><summary>{} fields</summary><dl class="figures">{}</dl></details>', len(pairs), listed)


def _text(value: Any) -> str:
    shown = NONE if value is None else "on" if value is True else "off" if value is False else str(value)
    return shown if len(shown) <= _MAX_VALUE else f"{shown[:_MAX_VALUE]}…"
