"""Translates the contents of a request to the messages of a chat completion.

The results of functions become messages of their own, in front of what the user says beside them: chat completions
want them right behind the calls. Each belongs to the call with its id or else, since Google needs no ids, to the next
call of its function.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES, check_content_size
from gateway.protocol.wire import MAX_MESSAGES
from gateway.surfaces.checks import Json, field_of, invalid, missing, optional_text, required_text
from gateway.surfaces.gemini.fields import message, repeated
from gateway.surfaces.gemini.model_turn import ModelTurn
from gateway.surfaces.gemini.parts import ADDRESS, CALL, FILE, OWN, RESULT, TEXT, file_part, kind_of, result_message

_USERS = ("user", "function", "")
_MODEL = "model"
# A character of a text takes at most six bytes in JSON.
_PLAIN_CHARACTERS = MAX_MESSAGE_BYTES // 6

_encode = msgspec.json.Encoder().encode


def read_contents(fields: Json, untranslatable: list[str]) -> list[Json]:
    """Returns the messages. `untranslatable` collects the parts that a chat completion cannot express. Raises
    ValidationError."""
    if fields.get("contents") is None:
        raise missing("contents")
    contents = repeated(fields, "contents")
    if not contents:
        raise ValidationError("contents: at least one content is required", code="empty_messages")
    reader = _Reader(untranslatable)
    for index, content in enumerate(contents):
        reader.add(content, f"contents[{index}]")
    if len(reader.messages) > MAX_MESSAGES:
        raise ValidationError(
            f"contents: {len(reader.messages)} messages, each functionResponse being one, at most {MAX_MESSAGES} are"
            " allowed",
            code="too_many_messages",
        )
    return reader.messages


def read_instruction(fields: Json) -> list[Json]:
    """Returns the message with the system instruction, none when it holds nothing. Raises ValidationError."""
    if fields.get("systemInstruction") is None:
        return []
    place = "systemInstruction"
    instruction = fields[place]
    if isinstance(instruction, str):
        return [{"role": "system", "content": instruction}] if instruction else []
    texts = []
    for number, value in enumerate(repeated(message(instruction, place), "parts", place)):
        where = f"{place}.parts[{number}]"
        texts.append(required_text(message(value, where), TEXT, where))
    texts = [text for text in texts if text]
    if not texts:
        return []
    content = texts[0] if len(texts) == 1 else [{"type": TEXT, "text": text} for text in texts]
    return [{"role": "system", "content": content}]


class _Reader:
    """Reads the contents in order. `_waiting` are the calls, by id and name, that have no result yet; `_called` counts
    all calls."""

    __slots__ = ("_called", "_untranslatable", "_waiting", "messages")

    def __init__(self, untranslatable: list[str]) -> None:
        self.messages: list[Json] = []
        self._untranslatable = untranslatable
        self._waiting: list[tuple[str, str]] = []
        self._called = 0

    def add(self, value: Any, place: str) -> None:
        content = message(value, place)
        role = optional_text(content, "role", place) or ""
        parts = repeated(content, "parts", place)
        if (plain := _plain(role, parts)) is not None:
            self.messages.append(plain)
            return
        start = len(self.messages)
        if role == _MODEL:
            self._of_model(parts, place)
        elif role in _USERS:
            self._of_user(parts, place)
        else:
            raise invalid(field_of(place, "role"), "expected user or model")
        for made in self.messages[start:]:
            _check_size(made["content"], field_of(place, "parts"))

    def _of_model(self, parts: list[Any], place: str) -> None:
        turn = ModelTurn(self._called)
        for number, part in enumerate(parts):
            turn.add(part, f"{place}.parts[{number}]", self._untranslatable)
        self._waiting = turn.calls
        self._called += len(turn.calls)
        self.messages.append(turn.message())

    def _of_user(self, parts: list[Any], place: str) -> None:
        said: list[Json] = []
        for number, value in enumerate(parts):
            where = f"{place}.parts[{number}]"
            part = message(value, where)
            kind = kind_of(part, where)
            if kind == RESULT:
                self._result(part, where)
            elif kind == TEXT:
                said.append({"type": "text", "text": required_text(part, TEXT, where)})
            elif kind in (FILE, ADDRESS):
                said.append(file_part(part, kind, where, self._untranslatable))
            elif kind == CALL:
                raise invalid(where, f"a {CALL} stands in a content of the role {_MODEL}")
            elif kind in OWN:
                self._untranslatable.append(f"{where}.{kind}: a chat completion has no such part")
                said.append({"type": kind, kind: part[kind]})
        if said or not parts:
            only_text = said[0]["text"] if len(said) == 1 and said[0]["type"] == "text" else None
            self.messages.append({"role": "user", "content": (said or "") if only_text is None else only_text})

    def _result(self, part: Json, place: str) -> None:
        result = message(part[RESULT], field_of(place, RESULT))
        name = optional_text(result, "name", field_of(place, RESULT)) or ""
        given = optional_text(result, "id", field_of(place, RESULT)) or ""
        found = next((call for call in self._waiting if (call[0] == given if given else call[1] == name)), None)
        if found is not None:
            self._waiting.remove(found)
        call_id = found[0] if found is not None else given or f"call_{place}"
        orphan = "" if found is not None else name
        self.messages.append(result_message(part, call_id, orphan, place, self._untranslatable))


def _plain(role: str, parts: list[Any]) -> Json | None:
    """Returns the message of one text, as most are; None for any other, and for one that may be too large."""
    if len(parts) != 1 or not isinstance(parts[0], dict) or len(parts[0]) != 1:
        return None
    text = parts[0].get(TEXT)
    if not isinstance(text, str) or len(text) > _PLAIN_CHARACTERS:
        return None
    if role == _MODEL:
        return {"role": "assistant", "content": text}
    return {"role": "user", "content": text} if role in _USERS else None


def _check_size(content: Any, field: str) -> None:
    """Raises ValidationError, which names the client's `field`, for a content above the gateway's limit."""
    if content is None or (isinstance(content, str) and len(content) <= _PLAIN_CHARACTERS):
        return
    encoded = _encode(content)
    if len(encoded) > MAX_MESSAGE_BYTES:
        check_content_size(field, encoded)
