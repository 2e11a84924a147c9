from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from core.errors import ValidationError
from core.wire.parameters import ANYWHERE
from prompts.models import NAME_CHARACTERS

# Applications choose the ids of users and sessions, which are hashed.
MAX_ID_CHARACTERS = 512
_MAX_VERSION = 2**31 - 1
_MAX_PARAMETERS = 50
_MAX_QUOTED_CHARACTERS = 100
_NUMBER = re.compile(r"[0-9]{1,10}")
# Clients send these parameters to every call (docs/api.md#parameters).
_IGNORED = ANYWHERE - {"project_id"}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class PromptQuery(msgspec.Struct, frozen=True):
    """The prompt that an application asks for.

    With `version` 0 and an empty `label` the project chooses: the active version, or the one that a running rollout
    gives the user or the session. `variables` is None if templates should come as they are written.
    """

    name: str
    label: str = ""
    version: int = 0
    variables: Mapping[str, Any] | None = None
    user_id: str = ""
    session_id: str = ""
    project_id: str = ""


def read_query(query: bytes, name: str | None) -> PromptQuery:
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise ValidationError.of_field("query", f"Has more than {_MAX_PARAMETERS} parameters.") from None
    # An empty parameter counts as left out, as in every management call.
    given: dict[str, Any] = {field: value for field, value in pairs if value != "" and field not in _IGNORED}
    if name is None and "name" not in given:
        raise ValidationError(
            "name: this field is required", code="missing_field", details={"name": ["This field is required."]}
        )
    if name is not None:
        _refuse_unknown(given, _FIELDS - {"name"})
        given["name"] = name
    if "version" in given:
        given["version"] = int(given["version"]) if _NUMBER.fullmatch(given["version"]) else 0
    if "variables" in given:
        given["variables"] = _decoded(given["variables"].encode(errors="replace"), "variables")
    return _checked(given, render=_render(given))


def read_body(body: bytes, name: str) -> PromptQuery:
    given = _decoded(body, "body") if body.strip() else {}
    if not isinstance(given, dict):
        raise ValidationError("The request body has to be a JSON object", code="invalid_json")
    _refuse_unknown(given, _FIELDS - {"name", "render"})
    return _checked(
        {**{field: value for field, value in given.items() if value is not None}, "name": name}, render=True
    )


def read_named(
    name: str, reference: str, variables: Mapping[str, Any], *, user_id: str = "", session_id: str = ""
) -> PromptQuery:
    """`reference` is a label or a version's number; empty leaves the choice to the project.

    The prompt is always rendered. Raises ValidationError.
    """
    given: dict[str, Any] = {"name": name, "variables": variables, "user_id": user_id, "session_id": session_id}
    if _NUMBER.fullmatch(reference):
        given["version"] = int(reference)
    elif reference:
        given["label"] = reference
    return _checked(given, render=True)


_FIELDS = frozenset(PromptQuery.__struct_fields__) | {"render"}


def _render(given: dict[str, Any]) -> bool:
    text = given.pop("render", None)
    if text is None:
        return "variables" in given
    if text.lower() not in _BOOLEANS:
        raise ValidationError.of_field("render", "Must be true or false.")
    return _BOOLEANS[text.lower()]


def _checked(given: dict[str, Any], *, render: bool) -> PromptQuery:
    _refuse_unknown(given, _FIELDS)
    version = given.get("version")
    if version is not None and (type(version) is not int or not 1 <= version <= _MAX_VERSION):
        raise ValidationError.of_field("version", "Must be the number of a version, from 1 on.")
    for field, limit in (
        ("name", NAME_CHARACTERS),
        ("label", NAME_CHARACTERS),
        ("user_id", MAX_ID_CHARACTERS),
        ("session_id", MAX_ID_CHARACTERS),
        ("project_id", MAX_ID_CHARACTERS),
    ):
        text = given.get(field, "")
        if not isinstance(text, str) or len(text) > limit:
            raise ValidationError.of_field(field, f"Must be text of at most {limit} characters.")
    if version is not None and given.get("label"):
        raise ValidationError.of_field("label", "Names a version already named by version: send one of both.")
    variables = given.get("variables")
    if variables is not None and not isinstance(variables, dict):
        raise ValidationError.of_field("variables", "Must be a JSON object of values by name.")
    return PromptQuery(**{**given, "variables": (variables or {}) if render else None})


def _decoded(text: bytes, field: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValidationError.of_field(field, "Is not valid JSON.") from None


def _refuse_unknown(given: Iterable[str], known: frozenset[str]) -> None:
    for field in given:
        if field not in known:
            there_are = ", ".join(sorted(known))
            raise ValidationError.of_field(
                field[:_MAX_QUOTED_CHARACTERS], f"There is no such parameter. There are: {there_are}."
            )
