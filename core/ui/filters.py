from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.http import QueryDict

from core.ui.tables import page_link, pairs_without

NOT = "not_"
"""Prefixes the parameter with the values that a filter leaves out."""

# Parameters that mean nothing in another list.
_OF_A_PLACE = ("cursor", "p", "panel", "peek")
_NOWHERE = dict.fromkeys(_OF_A_PLACE, "")
_SHOWN_VALUES = 6


@dataclass(frozen=True, slots=True)
class FilterField:
    """`kind` is `text`, `number` or `choice`. With `is_several` it may be given several times, and `not_` in front of
    its name excludes values."""

    name: str
    label: str
    kind: str = "text"
    choices: Sequence[tuple[str, str]] = ()
    help: str = ""
    is_several: bool = False


@dataclass(frozen=True, slots=True)
class FacetValue:
    value: str
    count: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    label: str
    values: Sequence[FacetValue]


@dataclass(frozen=True, slots=True)
class Chip:
    label: str
    # How the value is meant; empty where the label says it.
    operator: str
    value: str
    # The address without this filter.
    remove: str


@dataclass(frozen=True, slots=True)
class FacetLink:
    """A value with the address that adds or removes it, and the one that excludes it or stops excluding it. The second
    is empty for a filter without `not_`."""

    label: str
    count: int
    href: str
    is_chosen: bool
    exclude: str = ""
    is_excluded: bool = False


@dataclass(frozen=True, slots=True)
class FacetGroup:
    label: str
    shown: Sequence[FacetLink]
    folded: Sequence[FacetLink]

    @property
    def chosen(self) -> int:
        return sum(link.is_chosen or link.is_excluded for link in self.shown)


@dataclass(frozen=True, slots=True)
class ShownField:
    field: FilterField
    value: str


@dataclass(frozen=True, slots=True)
class Filters:
    """`query` is the address's query; errors name the field that they belong to."""

    fields: Sequence[FilterField]
    query: QueryDict
    facets: Sequence[Facet] = ()
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def chips(self) -> Iterator[Chip]:
        for item in self.fields:
            for name, operator in ((item.name, "is"), (f"{NOT}{item.name}", "is not")):
                for value in filter(None, dict.fromkeys(self.query.getlist(name))):
                    shown = dict(item.choices).get(value, value)
                    yield Chip(item.label, "" if item.kind == "number" else operator, shown, self._toggled(name, value))

    @property
    def shown_fields(self) -> Iterator[ShownField]:
        for item in self.fields:
            yield ShownField(item, "" if item.is_several else self.query.get(item.name, ""))

    @property
    def problems(self) -> Iterator[str]:
        for name, messages in self.errors.items():
            for message in messages:
                yield f"{name}: {message}"

    @property
    def kept(self) -> Iterator[tuple[str, str]]:
        replaced = {item.name for item in self.fields if not item.is_several}
        return pairs_without(self.query, replaced | set(_OF_A_PLACE))

    @property
    def cleared(self) -> str:
        names = [name for item in self.fields for name in (item.name, f"{NOT}{item.name}")]
        return page_link(self.query, **dict.fromkeys(names, ""), **_NOWHERE)

    @property
    def facet_groups(self) -> Iterator[FacetGroup]:
        for facet in self.facets:
            if facet.values:
                links = [self._facet_link(facet, value) for value in facet.values]
                # What is chosen is in sight, however rare it is.
                first = [link for place, link in enumerate(links) if place < _SHOWN_VALUES or link.is_chosen]
                yield FacetGroup(facet.label, first, [link for link in links if link not in first])

    def _facet_link(self, facet: Facet, value: FacetValue) -> FacetLink:
        excluded = f"{NOT}{facet.name}"
        return FacetLink(
            value.label or value.value or "none",
            value.count,
            self._toggled(facet.name, value.value),
            value.value in self.query.getlist(facet.name),
            self._toggled(excluded, value.value),
            value.value in self.query.getlist(excluded),
        )

    def _toggled(self, name: str, value: str) -> str:
        given = self.query.getlist(name)
        values = [one for one in given if one != value] if value in given else [*given, value]
        opposite = name.removeprefix(NOT) if name.startswith(NOT) else f"{NOT}{name}"
        others = [one for one in self.query.getlist(opposite) if one != value]
        return page_link(self.query, **{name: values, opposite: others}, **_NOWHERE)
