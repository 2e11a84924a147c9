"""Translates the items of `input` to the messages of a chat completion
(https://platform.openai.com/docs/api-reference/responses/create#responses-create-input)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.surfaces.responses import compaction
from gateway.surfaces.responses.parts import contents, text_of
from gateway.surfaces.responses.reasoning import reasoning_details
from gateway.surfaces.responses.tools import CUSTOM_INPUT, SEARCH, Origin, Toolbox, namespace_of

Json = dict[str, Any]

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
    """The messages of a request in the order of its items. Items of one turn of the model (reasoning, text, calls) make
    one message of the assistant; `untranslatable` names the items that a chat completion cannot express."""

    __slots__ = ("_referred_text", "_toolbox", "_turn", "messages", "untranslatable")

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self.messages: list[Json] = []
        self.untranslatable: list[str] = []
        self._turn: Json | None = None
        # The place of a reference to a text of the gateway's that is the item before.
        self._referred_text = ""

    def add_plain(self, item: Any) -> bool:
        """Adds a message that is a text alone, as most items are. Returns False for any other item."""
        content = item.get("content") if isinstance(item, dict) else None
        if not isinstance(content, str) or item.get("role") not in _PLAIN_ROLES:
            return False
        if item.get("type", _MESSAGE) != _MESSAGE:
            return False
        self._turn, self._referred_text = None, ""
        self.messages.append({"role": item["role"], "content": content})
        return True

    def add(self, item: Any, place: str) -> None:
        """Adds the item at `place` (`input[3]`). Raises ValidationError, which names the item's field."""
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
        """Reads a reference to an item of an earlier answer: the AI SDK sends them unless it is told that answers are
        not stored. It refers to reasoning that it was given without its encrypted content and so cannot send.
        `referred` is the place of the item before, if that is a reference to a text."""
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
        """Takes back that the reference at `place` cannot be expressed: it is the text beside a call, which says what
        the model wanted."""
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
        self.messages.append({"role": role, "content": contents(content, f"{place}.content", self.untranslatable)})

    def _text(self, content: Any, place: str) -> None:
        text, refusal = text_of(content, place)
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
        call_id, kind = _text_field(item, "call_id", place), _CALLS[item["type"]]
        if kind == SEARCH:
            name, arguments = SEARCH, _json_text(item.get("arguments"))
        else:
            name = _text_field(item, "name", place)
            if kind == "custom":
                arguments = _json_text({CUSTOM_INPUT: _text_field(item, "input", place)})
            else:
                arguments = _text_field(item, "arguments", place)
        function = {"name": self._toolbox.name_of(Origin(kind, name, namespace_of(item))), "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        turn = self._turn if self._turn is not None else self._new()
        turn.setdefault("tool_calls", []).append(call)

    def _output(self, item: Mapping[str, Any], place: str) -> None:
        call_id = _text_field(item, "call_id", place)
        output = item.get("output")
        if output is None:
            raise ValidationError(f"{place}.output: this field is required", code="missing_field")
        self._turn = None
        content = contents(output, f"{place}.output", self.untranslatable)
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": content})

    def _found(self, item: Mapping[str, Any]) -> None:
        """Adds what the client's search for tools has found; the tools themselves are among those of the request."""
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
        """Returns the assistant's message of the present turn; a new one when the present one has the field already."""
        return self._turn if self._turn is not None and unless not in self._turn else self._new()

    def _new(self) -> Json:
        self._turn = {"role": "assistant"}
        self.messages.append(self._turn)
        return self._turn


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value or {}).decode()


def _text_field(item: Mapping[str, Any], name: str, place: str) -> str:
    value = item.get(name)
    if value is None:
        raise ValidationError(f"{place}.{name}: this field is required", code="missing_field")
    if not isinstance(value, str):
        raise ValidationError(f"{place}.{name}: expected a string")
    return value
