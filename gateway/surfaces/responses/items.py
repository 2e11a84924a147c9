"""Translates the items of `input`, and the typed parts of their content, to the messages of a chat completion
(https://platform.openai.com/docs/api-reference/responses/create#responses-create-input)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.marked_documents import MARK
from gateway.surfaces.checks import Json, required_text
from gateway.surfaces.responses import compaction
from gateway.surfaces.responses.reasoning import reasoning_details
from gateway.surfaces.responses.tools import CUSTOM_INPUT, SEARCH, Origin, Toolbox, namespace_of

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})


def _contents(content: Any, place: str, untranslatable: list[str]) -> str | list[Json]:
    """Returns the content of a user's, system or tool message. Raises ValidationError, which names the part.

    Parts that a chat completion cannot express are added to `untranslatable`.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValidationError(f"{place}: expected a string or a list")
    made = [_part(part, f"{place}[{index}]", untranslatable) for index, part in enumerate(content)]
    return [part for part in made if part is not None]


def _text_and_refusal(content: Any, place: str) -> tuple[str, str]:
    """Returns the text and the refusal of an answer of the model that comes back."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise ValidationError(f"{place}: expected a string or a list")
    texts, refusals = [], []
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "refusal":
            refusals.append(required_text(part, "refusal", f"{place}[{index}]"))
        elif kind in _TEXTS:
            texts.append(required_text(part, "text", f"{place}[{index}]"))
        else:
            raise ValidationError(f"{place}[{index}].type: expected output_text or refusal")
    return "".join(texts), "".join(refusals)


def _part(part: Any, place: str, untranslatable: list[str]) -> Json | None:
    if not isinstance(part, Mapping):
        raise ValidationError(f"{place}: expected an object")
    kind = part.get("type")
    if kind in _TEXTS:
        made = {"type": "text", "text": required_text(part, "text", place)}
        return {**made, MARK: part[MARK]} if MARK in part else made
    if kind == "input_image":
        return _image(part, place, untranslatable)
    if kind == "input_file":
        return _file(part, place, untranslatable)
    if kind == "input_audio" and isinstance(part.get("input_audio"), Mapping):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    if kind == "refusal":
        return {"type": "text", "text": required_text(part, "refusal", place)}
    untranslatable.append(f"{place}: parts of the type {kind!r} are known to OpenAI's Responses API alone")
    return None


def _image(part: Mapping[str, Any], place: str, untranslatable: list[str]) -> Json | None:
    if part.get("image_url") is None:
        untranslatable.append(f"{place}: an image that is named by its file_id is known to the provider that holds it")
        return None
    image = {"url": required_text(part, "image_url", place)}
    if part.get("detail") is not None:
        image["detail"] = part["detail"]
    return {"type": "image_url", "image_url": image}


def _file(part: Mapping[str, Any], place: str, untranslatable: list[str]) -> Json | None:
    name = {"filename": part["filename"]} if isinstance(part.get("filename"), str) else {}
    if part.get("file_data") is not None:
        return {"type": "file", "file": {"file_data": required_text(part, "file_data", place), **name}}
    if part.get("file_url") is not None:
        return {"type": "document_url", "document_url": {"url": required_text(part, "file_url", place)}}
    untranslatable.append(f"{place}: a file that is named by its file_id is known to the provider that holds it")
    return None


# The roles are a tuple, since a client may send a value that no set can look up.
_PLAIN_ROLES = ("user", "system", "developer")
_ROLES = (*_PLAIN_ROLES, "assistant")


_MESSAGE = "message"
_SEARCH_CALL = "tool_search_call"
# The kind of tool that each item calls.
_CALLS: Mapping[str, str] = {"function_call": "function", "custom_tool_call": "custom", _SEARCH_CALL: SEARCH}
# Further tools are in the request's list, and what a provider's search of the web has found is in the answer's text.
_WITHOUT_MESSAGE = ("additional_tools", "web_search_call")
# The ids of items that the gateway made (`item_id` in `request.py`).
_OWN = r"_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}_[0-9]+"
_OWN_REASONING, _OWN_TEXT = re.compile(f"rs{_OWN}"), re.compile(f"msg{_OWN}")

_encode = msgspec.json.Encoder().encode


class Conversation:
    """Items of one turn of the model (reasoning, text, calls) make one assistant's message. `untranslatable` names the
    items that a chat completion cannot express."""

    __slots__ = ("_referred_text", "_toolbox", "_turn", "messages", "untranslatable")

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self.messages: list[Json] = []
        self.untranslatable: list[str] = []
        self._turn: Json | None = None
        # The place of a reference to a text of the gateway's that is the item before.
        self._referred_text = ""

    def add_plain(self, item: Any) -> bool:
        """A fast path for a message of one text, as most items are. Returns False for any other item."""
        content = item.get("content") if isinstance(item, dict) else None
        if not isinstance(content, str) or item.get("role") not in _PLAIN_ROLES:
            return False
        if item.get("type", _MESSAGE) != _MESSAGE:
            return False
        self._turn, self._referred_text = None, ""
        self.messages.append({"role": item["role"], "content": content})
        return True

    def add(self, item: Any, place: str) -> None:
        """`place` is like `input[3]`. Raises ValidationError, which names the item's field."""
        if not isinstance(item, dict):
            raise ValidationError(f"{place}: expected an object")
        kind = item.get("type", _MESSAGE)
        referred, self._referred_text = self._referred_text, ""
        if kind == _MESSAGE:
            self._message(item, place)
        elif kind == "reasoning":
            self._reasoning(item)
        elif kind in _CALLS:
            self._call(item, place, referred)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._output(item, place)
        elif kind == "tool_search_output":
            self._found(item)
        elif kind == "item_reference":
            self._reference(str(item.get("id")), place, referred)
        elif kind in _WITHOUT_MESSAGE:
            self._turn = None
        elif kind in (*compaction.ITEM, compaction.TRIGGER):
            self._compaction(kind, item, place)
        else:
            self._turn = None
            self.untranslatable.append(f"{place}: items of the type {kind!r} are known to OpenAI's Responses API alone")

    def _reference(self, identifier: str, place: str, referred: str) -> None:
        """Reads a reference to an item of an earlier answer; the AI SDK sends them unless told that answers are not
        stored.

        It refers to reasoning that it got without encrypted content and so cannot send. `referred` is the place of the
        item before, if that is a reference to a text.
        """
        if _OWN_REASONING.fullmatch(identifier):
            self._toolbox.warnings.append(f"{place}: dropped, no items are kept, and reasoning may be left out")
            # Gemini signs a call, so that its reasoning may stand between a text and the call.
            self._referred_text = referred
            return
        self._turn = None
        problem = 'no items are kept, so send the item itself, as clients do with "store": false'
        self.untranslatable.append(f"{place}: {problem}")
        if _OWN_TEXT.fullmatch(identifier):
            self._referred_text = place

    def _do_without(self, place: str) -> None:
        """Allows the reference at `place` after all: it is the text beside a call, which says what the model wanted."""
        self.untranslatable.pop()
        self._toolbox.warnings.append(f"{place}: dropped, no items are kept, and the call behind this text is there")

    def _message(self, item: Mapping[str, Any], place: str) -> None:
        role = item.get("role")
        if role not in _ROLES:
            raise ValidationError(f"{place}.role: expected user, assistant, system or developer")
        content = item.get("content")
        if content is None:
            raise ValidationError(f"{place}.content: this field is required", code="missing_field")
        if role == "assistant":
            self._text(content, f"{place}.content")
            return
        self._turn = None
        self.messages.append({"role": role, "content": _contents(content, f"{place}.content", self.untranslatable)})

    def _text(self, content: Any, place: str) -> None:
        text, refusal = _text_and_refusal(content, place)
        turn = self._open(unless="content")
        turn["content"] = text
        if refusal:
            turn["refusal"] = refusal

    def _reasoning(self, item: Mapping[str, Any]) -> None:
        turn = self._open(unless="tool_calls") if self._turn is None or "content" not in self._turn else self._new()
        parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
        texts = [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
        details = reasoning_details(item.get("encrypted_content"))
        if texts:
            turn["reasoning_content"] = turn.get("reasoning_content", "") + "\n\n".join(texts)
        if details:
            turn["reasoning_details"] = [*turn.get("reasoning_details", ()), *details]

    def _call(self, item: Mapping[str, Any], place: str, referred: str) -> None:
        if referred:
            self._do_without(referred)
        if item["type"] == _SEARCH_CALL and not item.get("call_id"):
            return  # The provider searched among the tools, all of which are offered here.
        call_id, kind = required_text(item, "call_id", place), _CALLS[item["type"]]
        if kind == SEARCH:
            name, arguments = SEARCH, _json_text(item.get("arguments"))
        else:
            name = required_text(item, "name", place)
            if kind == "custom":
                arguments = _json_text({CUSTOM_INPUT: required_text(item, "input", place)})
            else:
                arguments = required_text(item, "arguments", place)
        function = {"name": self._toolbox.name_of(Origin(kind, name, namespace_of(item))), "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        turn = self._turn if self._turn is not None else self._new()
        turn.setdefault("tool_calls", []).append(call)

    def _output(self, item: Mapping[str, Any], place: str) -> None:
        call_id = required_text(item, "call_id", place)
        output = item.get("output")
        if output is None:
            raise ValidationError(f"{place}.output: this field is required", code="missing_field")
        self._turn = None
        content = _contents(output, f"{place}.output", self.untranslatable)
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": content})

    def _found(self, item: Mapping[str, Any]) -> None:
        self._turn = None
        if item.get("call_id"):
            names = self._toolbox.names_of(item.get("tools"))
            content = "\n".join(f"Tool available: {name}" for name in names) or "No tool was found."
            self.messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})

    def _compaction(self, kind: str, item: Mapping[str, Any], place: str) -> None:
        self._turn = None
        if kind == compaction.TRIGGER:
            self.messages.append(compaction.REQUEST)
            return
        summary = compaction.summary_of(item)
        if summary is None:
            self._toolbox.warnings.append(f"{place}: dropped, only the vendor that made this compaction can read it")
        else:
            self.messages.append(compaction.opened(summary))

    def _open(self, *, unless: str) -> Json:
        return self._turn if self._turn is not None and unless not in self._turn else self._new()

    def _new(self) -> Json:
        self._turn = {"role": "assistant"}
        self.messages.append(self._turn)
        return self._turn


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value or {}).decode()
