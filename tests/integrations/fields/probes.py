"""Makes pairs of valid values for a shape: one without a field, or with another value of it, and one with it.

A path names the field and, in brackets, the form that was chosen among several:
`messages[user].content[image_url].image_url.detail=low`. The path of a part of a value starts with the value's own
path.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.integrations.adapters.subject import PDF, data_url
from tests.integrations.fields.shapes import Choice, Either, ListOf, MapOf, Record, Scalar, Shape, fields_of

# At a greater depth the types of all vendors only repeat themselves (content in results in content).
MAX_DEPTH = 9
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
# In the types of all vendors a field with a name of this mapping is valid with either of the two values only.
_BY_NAME: dict[str, tuple[Any, Any]] = {
    "url": ("https://example.com/a.png", "https://example.com/b.png"),
    "image_url": ("https://example.com/a.png", "https://example.com/b.png"),
    "document_url": ("https://example.com/a.pdf", "https://example.com/b.pdf"),
    "fileUri": ("gs://bucket/a.png", "gs://bucket/b.png"),
    "uri": ("s3://bucket/a.png", "s3://bucket/b.png"),
    "mimeType": ("image/png", "image/jpeg"),
    "file_data": (data_url("application/pdf", PDF), data_url("application/pdf", PDF + b"\n")),
    "data": ("aGVsbG8=", "d29ybGQ="),
    "input_audio": ("UklGRg==", "UklGRgAA"),
    "bytes": ("aGVsbG8=", "d29ybGQ="),
    "arguments": ('{"city": "Oslo"}', '{"city": "Rome"}'),
    "input": ({"city": "Oslo"}, {"city": "Rome"}),
    "parameters": (SCHEMA, {**SCHEMA, "title": "Place"}),
    "input_schema": (SCHEMA, {**SCHEMA, "title": "Place"}),
    "schema": (SCHEMA, {**SCHEMA, "description": "A place"}),
    "json_schema": (SCHEMA, {**SCHEMA, "title": "Place"}),
    "name": ("get_weather", "get_time"),
    "id": ("call_1", "call_2"),
    "tool_call_id": ("call_1", "call_2"),
    "tool_use_id": ("call_1", "call_2"),
    "toolUseId": ("call_1", "call_2"),
    "budget_tokens": (2048, 4096),
    "max_tokens": (200, 300),
    "max_completion_tokens": (200, 300),
    "logit_bias": ({"50256": -1}, {"50256": 1}),
    "temperature": (0.5, 0.7),
    "top_p": (0.96, 0.97),
    "topP": (0.96, 0.97),
    "tools": ([{"type": "function", "function": {"name": "get_weather"}}],) * 2,
}
_BY_KIND: dict[str, tuple[Any, Any]] = {
    "string": ("one", "two"),
    "integer": (2, 3),
    "number": (0.25, 0.5),
    "boolean": (True, False),
    "json": ({"a": 1}, {"a": 2}),
    "bytes": (base64.b64encode(b"one").decode(), base64.b64encode(b"two").decode()),
}


# Values of some types have no effect without certain fields, although the types do not require them.
_NEEDED = {"JSONSchema": ("schema",), "FileFile": ("file_data",), "Citation": ("start", "end", "text", "sources")}
# `file_id` replaces `file_data` in the same object.
_INSTEAD = {"file_id": "file_data"}


class Absent:
    """The marker of an absent field, in place of a value."""


ABSENT = Absent()


@dataclass(frozen=True)
class Probe:
    path: str
    before: Any
    after: Any


def minimal(shape: Shape, name: str = "") -> Any:
    """Returns the smallest valid value."""
    return next(iter(values(shape, name)))[1]


def values(shape: Shape, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every form that a value may have, each with a label that distinguishes it from the others."""
    match shape:
        case Choice():
            yield from ((f"={value}", value) for value in shape.values)
        case Scalar("boolean"):
            yield from (("=true", True), ("=false", False))
        case Scalar():
            yield "", scalar(shape, name)[0]
        case ListOf(MapOf()) if name in _BY_NAME:
            yield "", _BY_NAME[name][0]
        case ListOf():
            yield from ((label, [value]) for label, value in values(shape.item, name))
        case MapOf():
            named = _BY_NAME.get(name, (None,))[0]
            yield "", named if isinstance(named, dict) else {"key": minimal(shape.value, name)}
        case Either():
            yield from _forms(shape, name)
        case Record():
            yield from _records(shape)


def inside(shape: Shape, name: str = "", outer: tuple[Record, ...] = ()) -> Iterator[Probe]:
    """Yields the probes inside a value of this shape, field by field."""
    match shape:
        case ListOf():
            for probe in inside(shape.item, name, outer):
                yield Probe(probe.path, [probe.before], [probe.after])
        case MapOf():
            for probe in inside(shape.value, name, outer):
                yield Probe(probe.path, {"key": probe.before}, {"key": probe.after})
        case Either():
            for option, label in _labelled(shape):
                for probe in inside(option, name, outer):
                    yield Probe(label + probe.path, probe.before, probe.after)
        case Record() if shape not in outer and len(outer) < MAX_DEPTH:
            yield from _of_record(shape, (*outer, shape))


def scalar(shape: Scalar, name: str) -> tuple[Any, Any]:
    """Returns two valid values of a scalar; a name that is listed for several kinds applies to its own kind only."""
    named = _BY_NAME.get(name)
    kind = _BY_KIND[shape.kind]
    fits = named is not None and (shape.kind == "json" or isinstance(named[0], type(kind[0])))
    return named if named is not None and fits else kind


def _of_record(record: Record, outer: tuple[Record, ...]) -> Iterator[Probe]:
    whole = minimal(record)
    for name, field in fields_of(record).items():
        beside = {key: value for key, value in whole.items() if key not in (name, _INSTEAD.get(name))}
        rest = {} if record.one_of else beside
        there = whole.get(name, ABSENT)
        for label, value in values(field.shape, name):
            # A required field is compared with another value of it instead of its absence.
            before = there if field.required else ABSENT
            if record.one_of and not label:
                continue  # The value is one of the record's own forms, which are probed separately.
            if value != before and not (field.required and _is_type_field(name)):
                without = whole if record.one_of else _with(rest, name, before)
                yield Probe(f".{name}{label}", without, {**rest, name: value})
        if field.required and isinstance(field.shape, Scalar) and field.shape.kind != "boolean":
            first, second = scalar(field.shape, name)
            if first != second:
                yield Probe(f".{name}", {**rest, name: first}, {**rest, name: second})
        for probe in inside(field.shape, name, outer):
            yield Probe(f".{name}{probe.path}", {**rest, name: probe.before}, {**rest, name: probe.after})


def _is_type_field(name: str) -> bool:
    return name in ("type", "role")


def _with(rest: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return rest if isinstance(value, Absent) else {**rest, name: value}


def _records(record: Record) -> Iterator[tuple[str, Any]]:
    if record.one_of:
        for name, field in fields_of(record).items():
            yield f".{name}", {name: minimal(field.shape, name)}
        return
    needed = _NEEDED.get(record.name, ())
    there = {name: field for name, field in fields_of(record).items() if field.required or name in needed}
    yield "", {name: minimal(field.shape, name) for name, field in there.items()}


def _forms(shape: Either, name: str) -> Iterator[tuple[str, Any]]:
    for option, label in _labelled(shape):
        yield from ((label + inner, value) for inner, value in values(option, name))


def _labelled(shape: Either) -> list[tuple[Shape, str]]:
    """Returns the options, each with a unique label."""
    names = [_name_of(option) for option in shape.options]
    return [
        (option, f"[{name}]" if names.count(name) == 1 or not name else f"[{_type_name(option) or name}]")
        for option, name in zip(shape.options, names, strict=True)
    ]


def _name_of(shape: Shape) -> str:
    match shape:
        case Record():
            return _discriminator(shape) or shape.name
        case ListOf():
            return "list"
        case MapOf():
            return "object"
        case Scalar():
            return shape.kind
        case _:
            return "words"


def _type_name(shape: Shape) -> str:
    return shape.name if isinstance(shape, Record) else ""


def _discriminator(record: Record) -> str:
    fields = fields_of(record)
    for name in ("type", "role"):
        kind = fields[name].shape if name in fields else None
        if isinstance(kind, Choice) and len(kind.values) == 1:
            return str(kind.values[0])
    return ""
