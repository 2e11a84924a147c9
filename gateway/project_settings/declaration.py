"""The declaration of a setting: beside its type and default, its words and its section of the form.

The API, the operators' form, the history, the audit log and docs/settings.md are made from what `declared` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

Name = Annotated[str, Meta(max_length=200)]
Names = Annotated[tuple[Name, ...], Meta(max_length=50)]
Url = Annotated[str, Meta(max_length=2000, extra_json_schema={"format": "uri"})]
Email = Annotated[str, Meta(max_length=254, extra_json_schema={"format": "email"})]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the operators' form: its heading, and one or two sentences about it.

    `shapes_answers`: its settings shape answers, so that a cached answer is given again only under the same values.
    """

    title: str
    text: str
    shapes_answers: bool = False


class Kind(StrEnum):
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    MONEY = "money"  # US dollars, from 0 to core.caller_limits.MAX_BUDGET_USD
    TEXT = "text"
    URL = "url"
    CHOICE = "choice"
    NAMES = "names"  # a list of different texts, none of them blank
    EMAILS = "emails"
    CHOICES = "choices"  # a list of different choices
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as it is declared.

    `minimum` and `maximum` bound a number; `maximum` also the characters of a text and the entries of a list,
    `item_maximum` the characters of each entry. `path` is its name in warnings and documents, such as
    `guardrails.trust_mode`. `default` is JSON. `choices` map each value to its words. `problem` returns what is wrong
    with a value of the right type, empty if nothing is. `settings` are those that an object consists of.
    """

    name: str
    path: str
    kind: Kind
    is_nullable: bool
    default: Any
    section: Section
    label: str
    help: str
    hint: str
    choices: Mapping[str, str]
    problem: Callable[[Any], str] | None
    minimum: Any = None
    maximum: Any = None
    item_maximum: int | None = None
    settings: tuple[Setting, ...] = ()


def setting(
    section: Section,
    label: str,
    help: str,
    *,
    hint: str = "",
    choices: Mapping[Any, str] | None = None,
    problem: Callable[[Any], str] | None = None,
) -> Meta:
    """Declares a setting as metadata of its field.

    `label` and `hint` are shown beside the form's field, `help` in the OpenAPI document and in docs/settings.md.
    `choices` maps the values of a choice to their words.
    """
    extra = {"section": section, "hint": hint, "choices": choices or {}, "problem": problem}
    return Meta(title=label, description=help, extra=extra)


@cache
def declared(struct: type[msgspec.Struct], prefix: str = "") -> tuple[Setting, ...]:
    found: Any = inspect.type_info(struct)
    return tuple(_setting(field, prefix) for field in found.fields)


def parts(struct: type[msgspec.Struct]) -> Iterator[Setting]:
    for one in declared(struct):
        yield from one.settings or (one,)


def _setting(field: inspect.Field, prefix: str) -> Setting:
    if not isinstance(field.type, inspect.Metadata):
        raise TypeError(f"{prefix}{field.name}: is declared without setting().")
    inner, words, extra = field.type.type, field.type.extra_json_schema or {}, field.type.extra or {}
    types = inner.types if isinstance(inner, inspect.UnionType) else (inner,)
    (kind,) = [one for one in types if not isinstance(one, inspect.NoneType)]
    return Setting(
        name=field.name,
        path=prefix + field.name,
        is_nullable=len(types) > 1,
        default=msgspec.json.decode(msgspec.json.encode(field.default)),
        section=extra["section"],
        label=words["title"],
        help=words["description"],
        hint=extra["hint"],
        problem=extra["problem"],
        choices=extra["choices"],
        **_values(kind, words.get("format"), f"{prefix}{field.name}."),
    )


def _values(kind: inspect.Type, form: str | None, prefix: str) -> dict[str, Any]:
    match kind:
        case inspect.BoolType():
            return {"kind": Kind.BOOLEAN}
        case inspect.IntType(ge=minimum, le=maximum):
            return {"kind": Kind.INTEGER, "minimum": minimum, "maximum": maximum}
        case inspect.FloatType(ge=minimum, le=maximum):
            return {"kind": Kind.NUMBER, "minimum": minimum, "maximum": maximum}
        case inspect.DecimalType():
            return {"kind": Kind.MONEY}
        case inspect.StrType(max_length=maximum):
            return {"kind": Kind.URL if form == "uri" else Kind.TEXT, "maximum": maximum}
        case inspect.EnumType():
            return {"kind": Kind.CHOICE}
        case inspect.VarTupleType(item_type=item, max_length=maximum):
            return {"maximum": maximum, **_items(item)}
        case inspect.StructType(cls=struct):
            return {"kind": Kind.OBJECT, "settings": declared(struct, prefix)}
    raise TypeError(f"{prefix[:-1]}: no setting has the type {kind}.")


def _items(item: inspect.Type) -> dict[str, Any]:
    if isinstance(item, inspect.LiteralType):
        return {"kind": Kind.CHOICES}
    if isinstance(item, inspect.Metadata):  # Only a type with a format is wrapped in its metadata.
        return {**_items(item.type), "kind": Kind.EMAILS}
    if isinstance(item, inspect.StrType):
        return {"kind": Kind.NAMES, "item_maximum": item.max_length}
    raise TypeError(f"No setting is a list of {item}.")
