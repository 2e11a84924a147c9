"""Classes of records that repeat one another: what stands in several of them is declared more than once."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import combinations
from typing import NamedTuple

from tests.budgets import APPS, ROOT, tracked

# It only ever falls: a record that has the fields of another is seen as that one, or made from it.
MOST_IN_FAMILIES = 360
_MIN_FIELDS, _SHARE = 4, 0.7


class Record(NamedTuple):
    place: str
    fields: Set[str]


def records() -> Iterator[Record]:
    for app in APPS:
        for path in tracked(app):
            if "migrations" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.ClassDef) and len(fields := _fields(node)) >= _MIN_FIELDS:
                    yield Record(f"{path.relative_to(ROOT)}:{node.name}", fields)


def _fields(node: ast.ClassDef) -> Set[str]:
    found: set[str] = set()
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()):
                found.add(name)
    return {name for name in found if not name.startswith("_") and not name.isupper()}


def families(found: Sequence[Record]) -> list[list[Record]]:
    """Chains records that share four fields and 70 % of the smaller one's; the largest chain first."""
    having: defaultdict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(found):
        for name in record.fields:
            having[name].append(place)
    shared = Counter(pair for places in having.values() for pair in combinations(places, 2))
    family = {place: {place} for place in range(len(found))}
    for (one, other), count in shared.items():
        if count >= max(_MIN_FIELDS, _SHARE * min(len(found[one].fields), len(found[other].fields))):
            joined = family[one] | family[other]
            family.update(dict.fromkeys(joined, joined))
    distinct = {min(places): places for places in family.values() if len(places) > 1}
    return sorted(([found[place] for place in sorted(places)] for places in distinct.values()), key=len, reverse=True)


def test_records__that_repeat_others__become_fewer() -> None:
    found = families(list(records()))
    count = sum(map(len, found))
    largest = "\n\n".join("\n".join(record.place for record in family) for family in found[:5])

    assert count <= MOST_IN_FAMILIES, (
        f"{count} records repeat the fields of others, {MOST_IN_FAMILIES} may: make the new one from the old one."
        f" The largest families:\n\n{largest}"
    )
    assert count == MOST_IN_FAMILIES, f"Only {count} records repeat others now: lower MOST_IN_FAMILIES to it."


def test_families__shared_fields__are_found_in_chains() -> None:
    one, other, third, alone = (
        Record("a", {"a", "b", "c", "d"}),
        Record("b", {"a", "b", "c", "d", "e", "f"}),
        Record("c", {"c", "d", "e", "f"}),
        Record("d", {"a", "b", "c", "x"}),
    )

    assert families([one, alone, other, third]) == [[one, other, third]]
