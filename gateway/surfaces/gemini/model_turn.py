"""Translates a turn of the model: its texts, its calls of functions, and what it thought, with signatures.

A chat completion has one place for the text and one behind it for the calls. What else Google needs at its place, the
signatures of texts and the steps of Google's own tools, is named by that place, as `integrations.providers.google`
writes it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.surfaces.checks import (
    Json,
    field_of,
    invalid,
    optional_object,
    optional_text,
    required_name,
    required_text,
)
from gateway.surfaces.gemini.fields import message
from gateway.surfaces.gemini.foreign import is_foreign, opened
from gateway.surfaces.gemini.parts import CALL, FILE, OWN, RESULT, TEXT, kind_of
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
