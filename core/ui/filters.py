"""Filters of lists: chips of what is chosen, fields for the rest, and the commonest values with their counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.http import QueryDict

from core.ui.tables import page_link


@dataclass(frozen=True, slots=True)
class FilterField:
    """A filter by one parameter of the address. `kind` is `text`, `number` or `choice`."""

    name: str
    label: str
    kind: str = "text"
    choices: Sequence[tuple[str, str]] = ()
    help: str = ""


@dataclass(frozen=True, slots=True)
class FacetValue:
    value: str
    count: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Facet:
    """The commonest values of one filter; a click on a value filters by it."""

    name: str
    label: str
    values: Sequence[FacetValue]


@dataclass(frozen=True, slots=True)
class Chip:
    label: str
    value: str
    # The address without this filter.
    remove: str


@dataclass(frozen=True, slots=True)
class FacetLink:
    label: str
    count: int
    href: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ShownField:
    field: FilterField
    value: str


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list. `query` is the address's query; errors name the field that they belong to."""

    fields: Sequence[FilterField]
    query: QueryDict
    facets: Sequence[Facet] = ()
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def chips(self) -> Iterator[Chip]:
        for item in self.fields:
            value = self.query.get(item.name, "")
            if value:
                shown = dict(item.choices).get(value, value)
                yield Chip(item.label, shown, page_link(self.query, **{item.name: "", "cursor": "", "p": ""}))

    @property
    def shown_fields(self) -> Iterator[ShownField]:
        for item in self.fields:
            yield ShownField(item, self.query.get(item.name, ""))

    @property
    def problems(self) -> Iterator[str]:
        for name, messages in self.errors.items():
            for message in messages:
                yield f"{name}: {message}"

    @property
    def kept(self) -> Mapping[str, str]:
        """The parameters that the form sends along: project, range, order and columns."""
        names = {item.name for item in self.fields} | {"cursor", "p", "panel"}
        return {name: str(value) for name, value in self.query.dict().items() if name not in names}

    @property
    def cleared(self) -> str:
        return page_link(self.query, **{item.name: "" for item in self.fields}, cursor="", p="")

    @property
    def facet_links(self) -> Iterator[tuple[str, Sequence[FacetLink]]]:
        for facet in self.facets:
            if facet.values:
                yield facet.label, [self._facet_link(facet, value) for value in facet.values]

    def _facet_link(self, facet: Facet, value: FacetValue) -> FacetLink:
        is_chosen = self.query.get(facet.name, "") == value.value
        href = page_link(self.query, **{facet.name: "" if is_chosen else value.value, "cursor": "", "p": ""})
        return FacetLink(value.label or value.value or "none", value.count, href, is_chosen)
