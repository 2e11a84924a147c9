"""Translates the contents of a request to messages.

Function results become separate messages before the user's text: chat completions want them right after the calls. Each
belongs to the call with its id or, since Google needs no ids, to the next call of its function.

In a turn of the model a chat completion has one place for the text and, after it, one for the calls. Whatever else
Google needs at its place, signatures of texts and steps of Google's own tools, names that place, as
`integrations.providers.google` writes it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES, check_content_size
from gateway.protocol.wire import MAX_MESSAGES
from gateway.surfaces.checks import (
    Json,
    field_of,
    invalid,
    missing,
    optional_object,
    optional_text,
    required_name,
    required_text,
)
from gateway.surfaces.gemini.fields import message, repeated
from gateway.surfaces.gemini.foreign import is_foreign, opened
from gateway.surfaces.gemini.parts import ADDRESS, CALL, FILE, OWN, RESULT, TEXT, file_part, kind_of, result_message
from integrations.providers.common.completion import reasoning_encrypted, reasoning_text
from integrations.providers.google.messages import FORMAT, image_id, stretch_id
from integrations.providers.google.specifics import PARTS, Place

_encode = msgspec.json.Encoder().encode


class ModelTurn:
    """Reads the parts of one turn. `calls` are the ids and names of its calls; `first_call` numbers the calls of the
    whole conversation, from which calls without an id get one."""

    __slots__ = ("_details", "_images", "_length", "_own", "_texts", "_thoughts", "_tool_calls", "calls", "first_call")

    def __init__(self, first_call: int) -> None:
        self.first_call = first_call
        self.calls: list[tuple[str, str]] = []
        self._texts: list[str] = []
        self._length = 0
        self._tool_calls: list[Json] = []
        self._images: list[Json] = []
        self._thoughts: list[str] = []
        self._details: list[Json] = []
        self._own: list[Json] = []

    def add(self, value: Any, place: str, untranslatable: list[str]) -> None:
        """Raises ValidationError."""
        part = message(value, place)
        kind = kind_of(part, place)
        if kind == TEXT:
            self._text(part, place)
        elif kind == CALL:
            self._call(part, place)
        elif kind == FILE:
            self._image(part, place)
        elif kind in OWN:
            self._step(part, kind)
            untranslatable.append(f"{place}.{kind}: a chat completion has no such part")
        elif kind == RESULT:
            raise invalid(place, f"a {RESULT} stands in a content of the role user")
        elif kind:
            raise invalid(place, f"a {kind} stands in a content of the role user")
        else:
            self._sign(part, place, stretch_id(self._length, self._length))

    def message(self) -> Json:
        text = "".join(self._texts)
        made: Json = {"role": "assistant", "content": text or (None if self._tool_calls else "")}
        if self._tool_calls:
            made["tool_calls"] = self._tool_calls
        if self._thoughts:
            made["reasoning_content"] = "".join(self._thoughts)
        if self._details:
            made["reasoning_details"] = self._details
        if self._images:
            made["images"] = self._images
        if self._own:
            made["provider_specific_fields"] = {PARTS: self._own}
        return made

    def _text(self, part: Json, place: str) -> None:
        text = required_text(part, TEXT, place)
        if part.get("thought"):
            self._thought(text, part, place)
            return
        start = self._length
        self._texts.append(text)
        self._length += len(text)
        self._sign(part, place, stretch_id(start, self._length))

    def _thought(self, text: str, part: Json, place: str) -> None:
        if text:
            self._thoughts.append(text)
        signature = optional_text(part, "thoughtSignature", place)
        if not signature or is_foreign(signature):
            self._sign(part, place, "")
        elif text:
            self._details.append(reasoning_text(text, format=FORMAT, signature=signature, index=len(self._details)))

    def _call(self, part: Json, place: str) -> None:
        where = field_of(place, CALL)
        call = message(part[CALL], where)
        name = required_name(call, "name", where)
        call_id = optional_text(call, "id", where) or f"call_{self.first_call + len(self.calls)}"
        arguments = _encode(optional_object(call, "args", where) or {}).decode()
        self._sign(part, place, call_id)
        self.calls.append((call_id, name))
        self._tool_calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})

    def _image(self, part: Json, place: str) -> None:
        where = field_of(place, FILE)
        blob = message(part[FILE], where)
        url = f"data:{required_name(blob, 'mimeType', where)};base64,{required_text(blob, 'data', where)}"
        self._sign(part, place, image_id(len(self._images)))
        self._images.append({"type": "image_url", "image_url": {"url": url}})

    def _step(self, part: Json, kind: str) -> None:
        kept = {name: part[name] for name in ("thought", "thoughtSignature") if part.get(name)}
        place = Place(self._length, len(self._tool_calls), len(self._images))
        self._own.append({kind: part[kind], **kept, "place": place._asdict()})

    def _sign(self, part: Json, place: str, owner: str) -> None:
        """Keeps the signature of the part that `owner` names, in the words of its vendor."""
        signature = optional_text(part, "thoughtSignature", place)
        if not signature:
            return
        if is_foreign(signature):
            self._details += opened(signature, f"{place}.thoughtSignature")
        else:
            self._details.append(reasoning_encrypted(signature, format=FORMAT, index=len(self._details), id=owner))


_USERS = ("user", "function", "")
_MODEL = "model"
# A character of a text takes at most six bytes in JSON.
_PLAIN_CHARACTERS = MAX_MESSAGE_BYTES // 6


def read_contents(fields: Json, untranslatable: list[str]) -> list[Json]:
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
    if len(parts) != 1 or not isinstance(parts[0], dict) or len(parts[0]) != 1:
        return None
    text = parts[0].get(TEXT)
    if not isinstance(text, str) or len(text) > _PLAIN_CHARACTERS:
        return None
    if role == _MODEL:
        return {"role": "assistant", "content": text}
    return {"role": "user", "content": text} if role in _USERS else None


def _check_size(content: Any, field: str) -> None:
    if content is None or (isinstance(content, str) and len(content) <= _PLAIN_CHARACTERS):
        return
    encoded = _encode(content)
    if len(encoded) > MAX_MESSAGE_BYTES:
        check_content_size(field, encoded)
