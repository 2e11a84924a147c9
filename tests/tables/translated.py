"""Tables of translations in `<folder>/<subject>.json`, and how they are written.

A table has `all`, what its examples share, and `cases`. A case has a name, what its examples share, and `each`, which
lists them where there are several. What an example says itself counts more than what it shares; objects among its
values are joined. An example is the input of a translation and its outcome in one object.

`python -m <package of the tables> --write` writes into the tables what the product does today; the difference is for
review. `--check` names the tables that say something else. A new case needs its inputs only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tables.layout import laid_out

Json = dict[str, Any]

_WORDS = ("case", "why")


@dataclass(frozen=True)
class Case:
    """One example of a table, with all that it shares with others."""

    table: str
    name: str
    given: Json
    expected: Json

    def __str__(self) -> str:
        return f"{self.table}: {self.name}"


@dataclass(frozen=True)
class Tables:
    """The tables below a folder. `given` are the keys of inputs; all others are what `outcome_of` makes of these.

    What all examples of a table share is said once: of the keys `usual` for every example, of the keys of `beside` for
    those that have one of the keys there.
    """

    folder: Path
    given: Sequence[str]
    outcome_of: Callable[[Json], Json]
    usual: Sequence[str] = ()
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*/*.json"))

    def cases(self) -> list[Case]:
        return [case for file in self.files() for case in self._cases_of(file)]

    def rewritten(self, file: Path) -> str:
        """Returns the text of the table with what its examples give today."""
        table = json.loads(file.read_bytes())
        cases = [(case, [self._today(one) for one in self._examples(case, table)]) for case in table["cases"]]
        return self.text_of(table["subject"], cases)

    def text_of(self, subject: str, cases: Sequence[tuple[Mapping[str, Any], Sequence[Json]]]) -> str:
        """Returns the text of a table of cases: the words of each, and its examples in full."""
        common = self._common([example for _, examples in cases for example in examples])
        shown = []
        for words, examples in cases:
            own = [self._without(example, common) for example in examples]
            shared = _common(own, least=len(own)) if len(own) > 1 else own[0]
            case = {name: words[name] for name in _WORDS if name in words} | self._ordered(shared)
            if len(own) > 1:
                case["each"] = [self._ordered(_less(example, shared)) for example in own]
            shown.append(case)
        return laid_out({"subject": subject, "all": self._ordered(common), "cases": shown})

    def main(self) -> int:
        """Runs the command of the tables. Returns its exit code."""
        parser = argparse.ArgumentParser(description=__doc__)
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument("--write", action="store_true")
        action.add_argument("--check", action="store_true")
        arguments = parser.parse_args()
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
        stale = [file for file in self.files() if file.read_text() != self.rewritten(file)]
        for file in stale:
            if arguments.write:
                file.write_text(self.rewritten(file))
            else:
                sys.stderr.write(f"{file} is not current: run the command with --write\n")
        return 1 if stale and arguments.check else 0

    def _cases_of(self, file: Path) -> Iterator[Case]:
        table = json.loads(file.read_bytes())
        for case in table["cases"]:
            examples = self._examples(case, table)
            for number, example in enumerate(examples, 1):
                name = case["case"] if len(examples) == 1 else f"{case['case']} ({number})"
                given = self._in(example)
                expected = {name: value for name, value in example.items() if name not in given}
                yield Case(f"{file.parent.name}/{file.stem}", name, given, expected)

    def _today(self, example: Json) -> Json:
        given = self._in(example)
        return given | self.outcome_of(given)

    def _in(self, example: Json) -> Json:
        return {name: value for name, value in example.items() if name in self.given}

    def _examples(self, case: Json, table: Json) -> list[Json]:
        own = {name: value for name, value in case.items() if name not in (*_WORDS, "each")}
        each = [_joined(own, one) for one in case.get("each", [{}])]
        return [
            _joined({name: value for name, value in table["all"].items() if self._applies(name, one)}, one)
            for one in each
        ]

    def _applies(self, name: str, example: Json) -> bool:
        """Returns whether what a table's examples share under this name is for the example."""
        if name in self.usual:
            return name == self.usual[0] or "failure" not in example
        if name == "sent":
            return isinstance(example.get("sent"), dict)
        return any(key in example for key in self.beside[name])

    def _common(self, examples: Sequence[Json]) -> Json:
        common: Json = {}
        for name in (*self.usual, *self.beside):
            having = [example for example in examples if self._applies(name, example)]
            if len(having) > 1 and all(name in example for example in having):
                common |= _common([{name: example[name]} for example in having], least=max(2, len(having) // 3))
        return common

    def _without(self, example: Json, common: Json) -> Json:
        less = _less(example, {name: value for name, value in common.items() if self._applies(name, example)})
        # The body that is sent says that `to` and the shared parts of the body are meant.
        return {**less, "sent": {}} if example.get("sent") == common.get("sent", ()) else less

    def _ordered(self, example: Json) -> Json:
        """Returns the example with its inputs first, in the order in which they are documented."""
        places = {name: place for place, name in enumerate(self.given)}
        return dict(sorted(example.items(), key=lambda item: places.get(item[0], len(places))))


def _joined(shared: Json, own: Json) -> Json:
    joined = {**shared, **own}
    for name in shared.keys() & own.keys():
        if isinstance(shared[name], dict) and isinstance(own[name], dict):
            joined[name] = {**shared[name], **own[name]}
    return joined


def _common(examples: Sequence[Json], *, least: int) -> Json:
    """Returns the keys that all examples have, with the values that at least `least` of them share."""
    common: Json = {}
    for name in [name for name in examples[0] if all(name in example for example in examples)]:
        values = [example[name] for example in examples]
        if all(isinstance(value, dict) for value in values) and not all(value == values[0] for value in values):
            if inner := _common(values, least=least):
                common[name] = inner
        else:
            text, count = Counter(json.dumps(value) for value in values).most_common(1)[0]
            if count >= least:
                common[name] = json.loads(text)
    return common


def _less(example: Json, common: Json) -> Json:
    """Returns what the example says beyond what is common."""
    own: Json = {}
    for name, value in example.items():
        if name in common and common[name] == value:
            continue
        if name in common and isinstance(value, dict) and isinstance(common[name], dict):
            own[name] = _less_of_object(value, common[name])
        else:
            own[name] = value
    return own


def _less_of_object(value: Json, common: Json) -> Json:
    return {key: item for key, item in value.items() if key not in common or common[key] != item}
