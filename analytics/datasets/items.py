"""The rules for an item of a data set, and its reader from JSON. Pure: no store is asked."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.datasets.errors import InvalidItemError
from analytics.models.datasets import PREVIEW_CHARACTERS, tag_text

MAX_ITEM_BYTES = 256 * 1024
MAX_TAGS, MAX_TAG_CHARACTERS = 20, 50
MAX_DEPTH = 64

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
# These fields of a request's body are columns of an item, or belong to the call that was made and not to its input.
NO_PARAMETERS = frozenset(
    {"messages", "prompt_config", "prompt_variables", "user", "stream", "stream_options", "store", "metadata"}
)
_MAX_VERSION = 2**31 - 1
_MAX_SHOWN, _MAX_PROBLEMS = 100, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """Without `retained_from` the item's retention counts from now on."""

    messages: list[dict[str, Any]]
    variables: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    tags: Sequence[str] = ()
    prompt_config_id: UUID | None = None
    prompt_version: int | None = None
    source_request_id: UUID | None = None
    session_hash: str = ""
    retained_from: datetime | None = None


def read_item(value: Any) -> NewItem:
    """Raises InvalidItemError, which names the field. Ignores the `id` of an exported item: an added item gets a new
    one."""
    if not isinstance(value, dict):
        raise InvalidItemError({"": "Must be a JSON object."})
    problems: dict[str, str] = {
        name[:_MAX_SHOWN]: "There is no such field." for name in sorted(value.keys() - set(FIELDS))[:_MAX_PROBLEMS]
    }
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        try:
            require_storable(value.get(name), name)
            found[name] = read(value.get(name), name)
        except InvalidItemError as error:
            problems |= error.problems
    if found.get("prompt_version") is not None and value.get("prompt_config_id") is None:
        problems["prompt_config_id"] = "Must be given beside prompt_version."
    if problems:
        raise InvalidItemError(problems)
    item = NewItem(**found)
    if size_of(item) > MAX_ITEM_BYTES:
        raise InvalidItemError({"": f"The item is larger than {MAX_ITEM_BYTES:,} bytes."})
    return item


def read_tags(value: Any, name: str = "tags") -> list[str]:
    """In alphabetical order, each once. Raises InvalidItemError."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidItemError({name: "Must be a list of texts."})
    if len(value) > MAX_TAGS:
        raise InvalidItemError({name: f"At most {MAX_TAGS} tags."})
    for place, tag in enumerate(value):
        if not isinstance(tag, str) or not tag.strip():
            raise InvalidItemError({f"{name}.{place}": "Must be a text that is not blank."})
        if len(tag) > MAX_TAG_CHARACTERS:
            raise InvalidItemError({f"{name}.{place}": f"At most {MAX_TAG_CHARACTERS} characters."})
        if not tag.isprintable() or tag != tag.strip():
            raise InvalidItemError({f"{name}.{place}": "Must have no control characters, and no space around it."})
    return sorted(set(value))


def require_storable(value: Any, field: str = "") -> None:
    """Raises InvalidItemError for what databases refuse: NUL characters, lone surrogates, numbers that are not finite,
    and objects nested too deeply."""
    waiting: list[tuple[str, Any, int]] = [(field, value, 0)]
    while waiting:
        path, found, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidItemError({path[:_MAX_SHOWN]: f"Is nested deeper than {MAX_DEPTH} levels."})
        if isinstance(found, str):
            _require_text(path, found)
        elif isinstance(found, float) and not math.isfinite(found):
            raise InvalidItemError({path: "Must be a finite number."})
        elif isinstance(found, list):
            waiting.extend((_join(path, str(place)), inner, depth + 1) for place, inner in enumerate(found))
        elif isinstance(found, dict):
            for name, inner in found.items():
                _require_text(path, name)
                waiting.append((_join(path, name[:_MAX_SHOWN]), inner, depth + 1))


def size_of(item: NewItem) -> int:
    return len(_compact([item.messages, item.variables, item.parameters, item.expected]).encode())


def input_hash(item: NewItem) -> str:
    """The SHA-256 of what a model is asked; the expected answer does not matter."""
    return hashlib.sha256(_compact([item.messages, item.variables, item.parameters]).encode()).hexdigest()


def content_hash(input_digest: str, expected: Any) -> str:
    """The SHA-256 of an item's input, by its digest, together with the expected answer."""
    return hashlib.sha256(_compact([input_digest, expected]).encode()).hexdigest()


def preview_of(item: NewItem) -> str:
    """The beginning of the user's last text, or of the variables if no message has one."""
    users = [message for message in item.messages if message.get("role") == "user"]
    text = next((text for message in reversed(users or item.messages) if (text := _text(message.get("content")))), "")
    return (text or (_compact(item.variables) if item.variables else ""))[:PREVIEW_CHARACTERS]


def stored_tags(item: NewItem) -> str:
    return tag_text(item.tags)


def _messages(value: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise InvalidItemError({name: "Must be a list of messages, with at least one."})
    for place, message in enumerate(value):
        path = f"{name}.{place}"
        if not isinstance(message, dict):
            raise InvalidItemError({path: "Must be a JSON object."})
        if message.get("role") not in ROLES:
            raise InvalidItemError({f"{path}.role": f"Must be one of: {', '.join(ROLES)}."})
        _require_content(path, message)
    return value


def _require_content(path: str, message: Mapping[str, Any]) -> None:
    content = message.get("content")
    if content is None and not any(message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio")):
        raise InvalidItemError({f"{path}.content": "Must be given."})
    if content is not None and not isinstance(content, str | list):
        raise InvalidItemError({f"{path}.content": "Must be a text or a list of parts."})
    for place, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise InvalidItemError({f"{path}.content.{place}": "Must be a JSON object with a type."})


def _object(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidItemError({name: "Must be a JSON object."})
    return value


def _parameters(value: Any, name: str) -> dict[str, Any]:
    found = _object(value, name)
    wrong = sorted(found.keys() & NO_PARAMETERS)
    if wrong:
        raise InvalidItemError({f"{name}.{wrong[0]}": "Is no parameter of an item."})
    return found


def _anything(value: Any, name: str) -> Any:
    return value


def _uuid(value: Any, name: str) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(value) if isinstance(value, str) else _no_uuid(name)
    except ValueError:
        return _no_uuid(name)


def _no_uuid(name: str) -> UUID:
    raise InvalidItemError({name: "Must be a UUID."})


def _version(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MAX_VERSION:
        raise InvalidItemError({name: "Must be a whole number from 1 on."})
    return value


def _require_text(path: str, text: str) -> None:
    if "\x00" in text:
        raise InvalidItemError({path: "Must have no NUL characters."})
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidItemError({path: "Must have no single surrogates."})


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "messages": _messages,
    "variables": _object,
    "parameters": _parameters,
    "expected": _anything,
    "tags": read_tags,
    "source_request_id": _uuid,
    "prompt_config_id": _uuid,
    "prompt_version": _version,
}
FIELDS = ("id", *_READERS)
"""The fields of an item as JSON, in the order in which they are written."""
