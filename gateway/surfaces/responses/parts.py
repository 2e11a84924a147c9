"""Translates the content of messages, which is a string or a list of typed parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import ValidationError
from gateway.protocol.marked_documents import MARK

Json = dict[str, Any]

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})


def contents(content: Any, place: str, untranslatable: list[str]) -> str | list[Json]:
    """Returns the content of a user's, system or tool message. Raises ValidationError, which names the part.

    Parts that a chat completion cannot express are added to `untranslatable`.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValidationError(f"{place}: expected a string or a list")
    made = [_part(part, f"{place}[{index}]", untranslatable) for index, part in enumerate(content)]
    return [part for part in made if part is not None]


def text_of(content: Any, place: str) -> tuple[str, str]:
    """Returns the text and the refusal of an answer of the model that comes back."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise ValidationError(f"{place}: expected a string or a list")
    texts, refusals = [], []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "refusal":
            refusals.append(_string(part, "refusal", f"{place}[{index}]"))
        elif kind in _TEXTS:
            texts.append(_string(part, "text", f"{place}[{index}]"))
        else:
            raise ValidationError(f"{place}[{index}].type: expected output_text or refusal")
    return "".join(texts), "".join(refusals)


def _part(part: Any, place: str, untranslatable: list[str]) -> Json | None:
    if not isinstance(part, Mapping):
        raise ValidationError(f"{place}: expected an object")
    kind = part.get("type")
    if kind in _TEXTS:
        made = {"type": "text", "text": _string(part, "text", place)}
        return {**made, MARK: part[MARK]} if MARK in part else made
    if kind == "input_image":
        return _image(part, place, untranslatable)
    if kind == "input_file":
        return _file(part, place, untranslatable)
    if kind == "input_audio" and isinstance(part.get("input_audio"), Mapping):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    if kind == "refusal":
        return {"type": "text", "text": _string(part, "refusal", place)}
    untranslatable.append(f"{place}: parts of the type {kind!r} are known to OpenAI's Responses API alone")
    return None


def _image(part: Mapping[str, Any], place: str, untranslatable: list[str]) -> Json | None:
    if part.get("image_url") is None:
        untranslatable.append(f"{place}: an image that is named by its file_id is known to the provider that holds it")
        return None
    image = {"url": _string(part, "image_url", place)}
    if part.get("detail") is not None:
        image["detail"] = part["detail"]
    return {"type": "image_url", "image_url": image}


def _file(part: Mapping[str, Any], place: str, untranslatable: list[str]) -> Json | None:
    name = {"filename": part["filename"]} if isinstance(part.get("filename"), str) else {}
    if part.get("file_data") is not None:
        return {"type": "file", "file": {"file_data": _string(part, "file_data", place), **name}}
    if part.get("file_url") is not None:
        return {"type": "document_url", "document_url": {"url": _string(part, "file_url", place)}}
    untranslatable.append(f"{place}: a file that is named by its file_id is known to the provider that holds it")
    return None


def _string(part: Mapping[str, Any], name: str, place: str) -> str:
    value = part.get(name)
    if not isinstance(value, str):
        problem = "this field is required" if value is None else "expected a string"
        raise ValidationError(f"{place}.{name}: {problem}", code="missing_field" if value is None else None)
    return value
