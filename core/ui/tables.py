from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.http import QueryDict

from core.wire.pagination import Page as ListPage

Stored = TypeVar("Stored", bound=Model)

# Of rankings, whose later rows nobody reads.
_MAX_PAGE = 100
_SORT, _COLUMNS = "sort", "columns"
# Parameters that belong to one page of a list and mean nothing in another order.
_OF_A_PAGE = ("cursor", "p", "panel", "peek")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    label: str
    cell: Callable[[Any], Any]
    sort: str = ""
    is_numeric: bool = False
    # A column of little use for most readers is shown only when it is chosen.
    is_default: bool = True
    # A column that makes room where the page is narrow, as beside the agent.
    gives_way: bool = False

    @property
    def classes(self) -> str:
        return " ".join(["number"] * self.is_numeric + ["gives-way"] * self.gives_way)


@dataclass(frozen=True, slots=True)
class Empty:
    text: str
    link: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    column: Column
    # The address that sorts by the column; empty if it cannot be sorted.
    href: str
    # `ascending`, `descending` or empty, as in `aria-sort`.
    order: str


@dataclass(frozen=True, slots=True)
class Choice:
    column: Column
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Row:
    cells: Sequence[tuple[Column, Any]]
    href: str
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Any]
    empty: Empty
    query: QueryDict = field(default_factory=QueryDict)
    # The name of the sorted column; with a minus in front the largest comes first.
    sort: str = ""
    next_url: str = ""
    previous_url: str = ""
    # Returns the address that a row's first cell leads to.
    key: Callable[[Any], str] | None = None
    # Returns whether a row is the one that is shown beside the table.
    is_current: Callable[[Any], bool] | None = None
    # Offers the choice of columns.
    has_chooser: bool = False
    # The number of all rows, if it is known.
    count: int | None = None
    # The address of the form that keeps the table as a chart of a dashboard.
    keep: str = ""

    @property
    def shown(self) -> Sequence[Column]:
        # A form without its script sends a parameter for each column, with it one for all.
        given = ",".join(map(str, self.query.getlist(_COLUMNS))).split(",")
        chosen = set(given) if self.has_chooser and _COLUMNS in self.query else None
        return [column for column in self.columns if (column.is_default if chosen is None else column.name in chosen)]

    @property
    def headings(self) -> Iterator[Heading]:
        for column in self.shown:
            sorts_down = self.sort == f"-{column.sort}"
            order = "" if not column.sort or self.sort.lstrip("-") != column.sort else "ascending"
            order = "descending" if order and sorts_down else order
            yield Heading(column, self._sorted_by(column, sorts_down), order)

    @property
    def lines(self) -> Iterator[Row]:
        columns = self.shown
        for row in self.rows:
            yield Row(
                [(column, column.cell(row)) for column in columns],
                self.key(row) if self.key else "",
                bool(self.is_current and self.is_current(row)),
            )

    @property
    def choices(self) -> Iterator[Choice]:
        shown = {column.name for column in self.shown}
        for column in self.columns:
            yield Choice(column, column.name in shown)

    @property
    def kept(self) -> Iterator[tuple[str, str]]:
        return pairs_without(self.query, (*_OF_A_PAGE, _COLUMNS))

    def _sorted_by(self, column: Column, sorts_down: bool) -> str:
        if not column.sort:
            return ""
        query = self.query.copy()
        for name in _OF_A_PAGE:
            query.pop(name, None)
        # The first click shows the largest or the newest, the second the smallest or the oldest.
        query[_SORT] = column.sort if sorts_down else f"-{column.sort}"
        return f"?{query.urlencode()}"


@dataclass(frozen=True, slots=True)
class Numbered:
    """The page of `size` rows that `p` in the address names. Links to other pages lose the parameters in `reset`."""

    query: QueryDict
    size: int
    maximum: int = _MAX_PAGE
    reset: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        return page_number(self.query, maximum=self.maximum)

    @property
    def page(self) -> ListPage:
        return ListPage(self.size, (self.number - 1) * self.size)

    @property
    def rows(self) -> slice:
        return slice(self.page.offset, self.page.offset + self.size)

    def links(self, count: int, *, is_counted: bool = True) -> dict[str, Any]:
        return {
            "query": self.query,
            "count": count if is_counted else None,
            "next_url": self._link(self.number + 1) if self.rows.stop < count else "",
            "previous_url": self._link(self.number - 1) if self.number > 1 else "",
        }

    def _link(self, number: int) -> str:
        return page_link(self.query, **dict.fromkeys(self.reset, ""), p=str(number))


def newest_first(
    rows: QuerySet[Stored], query: QueryDict, size: int, *, by: str = ""
) -> tuple[list[Stored], dict[str, Any]]:
    """Returns at most `size` rows after the id `cursor` in the address, and the table's fields that lead to other
    pages.

    Rows come by falling id, or by the falling date in `by`.
    """
    cursor = query.get("cursor", "")
    if by:
        try:
            last = rows.filter(pk=UUID(cursor)).values_list(by, flat=True).first() if cursor else None
        except ValueError:
            last = None
        if last is not None:
            rows = rows.filter(Q(**{f"{by}__lt": last}) | Q(**{by: last, "pk__lt": cursor}))
    elif cursor.isdecimal():
        rows = rows.filter(pk__lt=int(cursor))
    page = list(rows[: size + 1])
    return page[:size], {
        "query": query,
        "next_url": page_link(query, cursor=str(page[size - 1].pk)) if len(page) > size else "",
        "previous_url": page_link(query, cursor="") if cursor else "",
    }


def page_number(query: QueryDict, *, maximum: int = _MAX_PAGE) -> int:
    text = query.get("p", "")
    return min(max(int(text), 1), maximum) if text.isascii() and text.isdecimal() and len(text) < 6 else 1


def page_link(query: QueryDict, **changes: str | Sequence[str]) -> str:
    changed = query.copy()
    changed.pop("panel", None)
    for name, value in changes.items():
        if value:
            changed.setlist(name, [value] if isinstance(value, str) else list(value))
        else:
            changed.pop(name, None)
    return f"?{changed.urlencode()}"


def pairs_without(query: QueryDict, names: Collection[str]) -> Iterator[tuple[str, str]]:
    for name, values in query.lists():
        if name not in names:
            yield from ((name, str(value)) for value in values)
