"""Tables of pages: columns, sorting and pages by links, so that they work without scripts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

# Of rankings, whose later rows nobody reads.
_MAX_PAGE = 100
_SORT, _COLUMNS = "sort", "columns"
# Parameters that belong to one page of a list and mean nothing in another order.
_OF_A_PAGE = ("cursor", "p", "panel", "peek")


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `cell` returns text or a safe string. `sort` is the name by which the list is sorted, if it can be."""

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
    """The text that stands in place of rows, and a link to the next step."""

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
    """A column that the reader may show or hide."""

    column: Column
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Row:
    cells: Sequence[tuple[Column, Any]]
    href: str
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of `rows`. `query` is the address's query, from which links of sorting and columns are made."""

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
        """The parameters that the form of the columns sends along."""
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


def page_number(query: QueryDict, *, maximum: int = _MAX_PAGE) -> int:
    """Returns the page of a list that the address names by `p`: 1 for a value that is none, at most `maximum`."""
    text = query.get("p", "")
    return min(max(int(text), 1), maximum) if text.isascii() and text.isdecimal() and len(text) < 6 else 1


def page_link(query: QueryDict, **changes: str | Sequence[str]) -> str:
    """Returns the address of the same page with other parameters; an empty value takes a parameter away, and a list is
    one that is given several times."""
    changed = query.copy()
    changed.pop("panel", None)
    for name, value in changes.items():
        if value:
            changed.setlist(name, [value] if isinstance(value, str) else list(value))
        else:
            changed.pop(name, None)
    return f"?{changed.urlencode()}"


def pairs_without(query: QueryDict, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields the parameters of a query but for `names`, each as often as it was given."""
    for name, values in query.lists():
        if name not in names:
            yield from ((name, str(value)) for value in values)
