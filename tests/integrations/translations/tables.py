"""The tables of translations in `<vendor>/<subject>.json`, and how they are written.

A table has `all`, what its examples share, and `cases`. A case has a name, what its examples share, and `each`, which
lists them where there are several. What an example says itself counts more than what it shares; objects among its
values are joined. An example is `examples.py`'s input and `outcomes.py`'s outcome in one object.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integrations.translations.layout import laid_out
from tests.integrations.translations.outcomes import GIVEN, outcome_of

Json = dict[str, Any]

FOLDER = Path(__file__).parent
COMMAND = "python -m tests.integrations.translations --write"
_WORDS = ("case", "why")
# What all examples of a table share is said once for those that have the key beside it, here by the key shared.
_SHARED = {"to": ("sent",), "sent": ("sent",), "head": ("answer", "chunks"), "framing": ("events",)}
_REQUESTS = ("provider", "model", "request", "context", "credentials")


@dataclass(frozen=True)
class Case:
    """One example of a table, with all that it shares with others."""

    table: str
    name: str
    example: Json

    def __str__(self) -> str:
        return f"{self.table}: {self.name}"

    @property
    def given(self) -> Json:
        return {name: value for name, value in self.example.items() if name in GIVEN}

    @property
    def expected(self) -> Json:
        return {name: value for name, value in self.example.items() if name not in GIVEN}


def files() -> list[Path]:
    return sorted(FOLDER.glob("*/*.json"))


def cases_of(file: Path) -> Iterator[Case]:
    table = json.loads(file.read_bytes())
    name = f"{file.parent.name}/{file.stem}"
    for case in table["cases"]:
        examples = _examples(case, table["all"])
        for number, example in enumerate(examples, 1):
            yield Case(name, case["case"] if len(examples) == 1 else f"{case['case']} ({number})", example)


def rewritten(file: Path) -> str:
    """Returns the text of the table with what its examples give today."""
    table = json.loads(file.read_bytes())
    cases = [
        (case, [given | outcome_of(given) for example in _examples(case, table["all"]) for given in [_given(example)]])
        for case in table["cases"]
    ]
    return text_of(table["subject"], cases)


def text_of(subject: str, cases: Sequence[tuple[Mapping[str, Any], Sequence[Json]]]) -> str:
    """Returns the text of a table of cases: the words of each, and its examples in full."""
    every = [example for _, examples in cases for example in examples]
    common = _common_of_table(every)
    shown = []
    for words, examples in cases:
        own = [_without(example, common) for example in examples]
        shared = _common(own, least=len(own)) if len(own) > 1 else own[0]
        case = {name: words[name] for name in _WORDS if name in words} | _ordered(shared)
        if len(own) > 1:
            case["each"] = [_ordered(_less(example, shared)) for example in own]
        shown.append(case)
    return laid_out({"subject": subject, "all": _ordered(common), "cases": shown})


def _examples(case: Json, common: Json) -> list[Json]:
    own = {name: value for name, value in case.items() if name not in (*_WORDS, "each")}
    each = [_joined(own, one) for one in case.get("each", [{}])]
    return [_joined({name: value for name, value in common.items() if _applies(name, one)}, one) for one in each]


def _given(example: Json) -> Json:
    return {name: value for name, value in example.items() if name in GIVEN}


def _applies(name: str, example: Json) -> bool:
    """Returns whether what a table's examples share under this name is for the example."""
    if name in _REQUESTS:
        return name == "provider" or "failure" not in example
    if name == "sent":
        return isinstance(example.get("sent"), dict)
    return any(key in example for key in _SHARED[name])


def _joined(shared: Json, own: Json) -> Json:
    joined = {**shared, **own}
    for name in shared.keys() & own.keys():
        if isinstance(shared[name], dict) and isinstance(own[name], dict):
            joined[name] = {**shared[name], **own[name]}
    return joined


def _common_of_table(examples: Sequence[Json]) -> Json:
    common: Json = {}
    for name in (*_REQUESTS, *_SHARED):
        having = [example for example in examples if _applies(name, example)]
        if len(having) > 1 and all(name in example for example in having):
            common |= _common([{name: example[name]} for example in having], least=max(2, len(having) // 3))
    return common


def _without(example: Json, common: Json) -> Json:
    less = _less(example, {name: value for name, value in common.items() if _applies(name, example)})
    # The body that is sent says that `to` and the shared parts of the body are meant.
    return {**less, "sent": {}} if example.get("sent") == common.get("sent", ()) else less


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


def _ordered(example: Json) -> Json:
    """Returns the example with its inputs first, in the order in which they are documented."""
    places = {name: place for place, name in enumerate(GIVEN)}
    return dict(sorted(example.items(), key=lambda item: places.get(item[0], len(places))))
