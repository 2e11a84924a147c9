from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from integrations.providers.base import Media
from integrations.providers.common.conversation import (
    Attachment,
    Block,
    Conversation,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from integrations.providers.google.media import RESOLUTIONS, fits_result, media_part
from integrations.providers.google.models import Model
from integrations.providers.google.specifics import OwnParts, Place, accepted_part, insert_parts

FORMAT = "google-gemini-v1"
# Google accepts this in place of the signature of a call that another vendor's model made:
# https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
UNSIGNED = "skip_thought_signature_validator"
# The id of an entry of `reasoning_details` names what its signature belongs to: a passage of the content, in
# characters, an image by its number, or a call by its id.
_STRETCH = "content:"
_CUT = "(The beginning of the conversation is left out.)"

Part = dict[str, Any]


def stretch_id(start: int, end: int) -> str:
    return f"{_STRETCH}{start}:{end}"


def image_id(number: int) -> str:
    return f"image:{number}"


@dataclass(frozen=True, slots=True)
class Writer:
    model: Model
    fetched: Mapping[str, Media]
    vertex: bool

    def contents(self, conversation: Conversation) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        called: list[str] = []  # `called` holds the ids of the calls that the next results answer.
        for turn in conversation.turns:
            if turn.role == "assistant":
                role, parts = "model", _ModelParts(self).write(turn.blocks)
                called = [block.id for block in turn.blocks if isinstance(block, ToolCall)]
            else:
                role, parts = "user", self._user_parts(turn.blocks, called)
            # A turn between two turns of one role was empty, so these are merged.
            if parts and written and written[-1]["role"] == role:
                written[-1]["parts"] += parts
            elif parts:
                written.append({"role": role, "parts": parts})
        if written and written[0]["role"] == "model" and any("functionCall" in part for part in written[0]["parts"]):
            # Google takes a call behind a turn of the user only, and agents cut the beginning of long conversations.
            written.insert(0, {"role": "user", "parts": [{"text": _CUT}]})
        return written

    @property
    def sends_ids(self) -> bool:
        """Vertex refuses call ids with models before the third generation, which match results by name and order
        (https://github.com/vercel/ai/issues/15664)."""
        return self.model.signed_calls or not self.vertex

    def media(self, attachment: Attachment) -> Part:
        part = media_part(attachment, self.fetched, vertex=self.vertex)
        level = RESOLUTIONS.get(attachment.detail) if self.model.resolutions else None
        return {**part, "mediaResolution": {"level": level}} if level else part

    def _user_parts(self, blocks: Iterable[Block], called: list[str]) -> list[Part]:
        results = [block for block in blocks if isinstance(block, ToolResult)]
        places = {call_id: place for place, call_id in enumerate(called)}
        results.sort(key=lambda result: places.get(result.call_id, len(called)))
        beside: list[Part] = []
        parts = [self._result(result, beside) for result in results] + beside
        for block in blocks:
            if isinstance(block, Text) and block.text:
                parts.append({"text": block.text})
            elif isinstance(block, Attachment):
                parts.append(self.media(block))
        return parts

    def _result(self, result: ToolResult, beside: list[Part]) -> Part:
        response: dict[str, Any] = {"name": result.name or result.call_id or "function"}
        if result.call_id and self.sends_ids:
            response["id"] = result.call_id
        files = [self.media(part) for part in result.content if isinstance(part, Attachment)]
        text = "\n".join(part.text for part in result.content if isinstance(part, Text))
        response["response"] = _response(text, is_error=result.is_error) if text or not files else {}
        inside = [part for part in files if self.model.media_results and fits_result(part)]
        if inside:
            response["parts"] = inside
        beside += [part for part in files if not any(part is held for held in inside)]
        return {"functionResponse": response}


def _response(text: str, *, is_error: bool) -> dict[str, Any]:
    """Google takes only objects: other values come under the names in Google's documentation
    (https://ai.google.dev/api/caching#FunctionResponse)."""
    if is_error:
        return {"error": text}
    if text.lstrip()[:1] == "{":
        try:
            decoded = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return {"result": text}
        if isinstance(decoded, dict):
            return decoded
    return {"result": text}


@dataclass(slots=True)
class _ModelParts:
    writer: Writer
    parts: list[Part] = field(default_factory=list)
    for_text: list[tuple[int, int, str]] = field(default_factory=list)  # An entry is (start, end, signature).
    by_id: dict[str, str] = field(default_factory=dict)  # `by_id` holds the signatures of calls and images.
    # `loose` holds signatures without a target, which go to the next call, else to the text.
    loose: list[str] = field(default_factory=list)
    own: list[tuple[Place, Part]] = field(default_factory=list)  # `own` holds the parts of Google's own tools.
    # The next fields count the content so far over the messages that make up the turn.
    characters: int = 0
    called: int = 0
    images: int = 0

    def write(self, blocks: Iterable[Block]) -> list[Part]:
        calls = sum(isinstance(block, ToolCall) for block in blocks)
        for block in blocks:
            match block:
                case Reasoning():
                    self._remember(block)
                case OwnParts():
                    self._own(block)
                case Text():
                    self._text(block.text, calls_follow=calls > 0)
                    self.characters += len(block.text)
                case ToolCall():
                    self._call(block)
                    self.called += 1
                case Attachment():
                    self._image(block)
        self.for_text += [(0, 0, signature) for signature in self.loose]
        self._signed_nothing()
        return insert_parts(self.parts, self.own) if self.own else self.parts

    def _own(self, block: OwnParts) -> None:
        so_far = Place(self.characters, self.called, self.images)
        for place, part in block.entries:
            taken = accepted_part(part, tools=self.writer.model.signed_calls, ids=self.writer.sends_ids)
            if taken is not None:
                self.own.append((place.behind(so_far), taken))

    def _remember(self, block: Reasoning) -> None:
        if block.format != FORMAT:
            return
        if block.text:
            signed = {"thoughtSignature": block.signature} if block.signature else {}
            self.parts.append({"text": block.text, "thought": True, **signed})
            return
        signature = block.data or block.signature
        if not signature:
            return
        stretch = stretch_of(block.id)
        if stretch is not None:
            self.for_text.append((*stretch, signature))
        elif block.id:
            self.by_id[block.id] = signature
        else:
            self.loose.append(signature)

    def _text(self, text: str, *, calls_follow: bool) -> None:
        if self.loose and not calls_follow:
            self.for_text.append((0, len(text), self.loose.pop(0)))
        stretches, self.for_text = self.for_text, []
        done = 0
        for start, end, signature in stretches:
            # The client may have changed the text, and the signature then stays with the rest of it.
            start, end = max(done, min(start, len(text))), max(done, min(end, len(text)))
            if start > done:
                self.parts.append({"text": text[done:start]})
            self.parts.append({"text": text[start:end], "thoughtSignature": signature})
            done = end
        if text[done:]:
            self.parts.append({"text": text[done:]})

    def _call(self, call: ToolCall) -> None:
        self._signed_nothing()
        function: dict[str, Any] = {"name": call.name, "args": call.arguments_object()}
        if call.id and self.writer.sends_ids:
            function["id"] = call.id
        part: Part = {"functionCall": function}
        signature = _own_signature(call) or self.by_id.pop(call.id, "") or (self.loose.pop(0) if self.loose else "")
        if not signature and self.writer.model.signed_calls and not self._follows_call():
            signature = UNSIGNED
        if signature:
            part["thoughtSignature"] = signature
        self.parts.append(part)

    def _image(self, attachment: Attachment) -> None:
        part = self.writer.media(attachment)
        signature = self.by_id.pop(image_id(self.images), "")
        self.parts.append({**part, "thoughtSignature": signature} if signature else part)
        self.images += 1

    def _follows_call(self) -> bool:
        """Only the first of parallel calls is signed."""
        return bool(self.parts) and "functionCall" in self.parts[-1]

    def _signed_nothing(self) -> None:
        """Signatures of parts without text go back unchanged."""
        for _, _, signature in self.for_text:
            self.parts.append({"text": "", "thoughtSignature": signature})
        self.for_text = []


def stretch_of(name: str) -> tuple[int, int] | None:
    """The start and end of the passage that an id names; None for other ids."""
    if not name.startswith(_STRETCH):
        return None
    start, _, end = name[len(_STRETCH) :].partition(":")
    return (int(start), int(end)) if start.isdecimal() and end.isdecimal() else None


def _own_signature(call: ToolCall) -> str:
    """Google's OpenAI-compatible endpoint puts it here
    (https://ai.google.dev/gemini-api/docs/thought-signatures#openai)."""
    found: Any = call.extra.get("extra_content")
    for name in ("google", "thought_signature"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""
