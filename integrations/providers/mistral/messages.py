"""Converts messages to Mistral's form (https://docs.mistral.ai/api/), unless they conform."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from integrations.providers.common.conversation import tool_reference_text
from integrations.providers.common.instructions import marked
from integrations.providers.common.parameters import Mapped
from integrations.providers.mistral.response import FORMAT, original_parts

# Mistral refuses other ids: "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9."
ID_LENGTH = 9
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_CallId = Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9]{9}\Z")]
# A field of a message outside of this mapping is part of an answer that clients send back (refusal, annotations,
# reasoning…) or a cache marker.
_FIELDS = {
    "system": ("role", "content"),
    "user": ("role", "content"),
    "assistant": ("role", "content", "tool_calls", "prefix"),
    "tool": ("role", "content", "tool_call_id", "name"),
}

# Mistral refuses some orders of roles: "Unexpected role 'user' after role 'tool'", and so on.
_REFUSED_ORDERS = frozenset({("tool", "user"), ("tool", "system"), ("assistant", "system")})


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class _ImageUrl(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    detail: str | None = None


class _Image(msgspec.Struct, tag_field="type", tag="image_url", forbid_unknown_fields=True):
    image_url: str | _ImageUrl


class _Document(msgspec.Struct, tag_field="type", tag="document_url", forbid_unknown_fields=True):
    document_url: str
    document_name: str | None = None


class _Audio(msgspec.Struct, tag_field="type", tag="input_audio", forbid_unknown_fields=True):
    input_audio: str


class _File(msgspec.Struct, tag_field="type", tag="file", forbid_unknown_fields=True):
    file_id: str


class _Think(msgspec.Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True):
    thinking: list[Any]
    signature: str | None = None
    closed: bool | None = None


class _Reference(msgspec.Struct, tag_field="type", tag="reference", forbid_unknown_fields=True):
    reference_ids: list[Any]


_Content = str | list[_Text | _Image | _Document | _Audio | _File | _Think | _Reference]


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: str | dict[str, Any]


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    id: _CallId
    function: _Function
    type: str = "function"
    index: int = 0


class _System(msgspec.Struct, tag_field="role", tag="system", forbid_unknown_fields=True):
    content: _Content


class _User(msgspec.Struct, tag_field="role", tag="user", forbid_unknown_fields=True):
    content: _Content


class _Assistant(msgspec.Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True):
    content: _Content | None = None
    tool_calls: list[_Call] | None = None
    prefix: bool = False


class _Tool(msgspec.Struct, tag_field="role", tag="tool", forbid_unknown_fields=True):
    content: _Content
    tool_call_id: _CallId
    name: str | None = None


_ROLES: Mapping[type, str] = {_System: "system", _User: "user", _Assistant: "assistant", _Tool: "tool"}
_decode_conforming = msgspec.json.Decoder(list[_System | _User | _Assistant | _Tool]).decode


def mistral_messages(raw: msgspec.Raw, mapped: Mapped, *, keep_bare_thinking: bool) -> msgspec.Raw | None:
    """None if the messages may be sent unchanged. `keep_bare_thinking` keeps reasoning of unknown origin, because the
    requested model reasons. Raises UnsupportedParameterError."""
    try:
        conforming = _decode_conforming(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        conforming = None
    if conforming is not None and _in_order(conforming):
        return None
    writer = _Writer(msgspec.json.decode(raw), mapped, keep_bare_thinking)
    return msgspec.Raw(msgspec.json.encode(list(writer.messages())))


def _in_order(messages: list[_System | _User | _Assistant | _Tool]) -> bool:
    if not messages:
        return True
    last = messages[-1]
    answerable = last.prefix if isinstance(last, _Assistant) else not isinstance(last, _System)
    silent = any(isinstance(one, _Assistant) and not (one.content or one.tool_calls) for one in messages)
    in_order = not any((_ROLES[type(a)], _ROLES[type(b)]) in _REFUSED_ORDERS for a, b in pairwise(messages))
    return answerable and in_order and not silent


def _is_silent(message: Mapping[str, Any]) -> bool:
    """Mistral refuses an empty answer: "Assistant message must have either content or tool_calls"."""
    return message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls")


class CallIds:
    """Converts foreign call ids to Mistral's form; an id always gives the same result, on later turns too."""

    def __init__(self, known: Iterator[str]) -> None:
        self._made: dict[str, str] = {}
        self._used = {call_id for call_id in known if is_call_id(call_id)}

    def of(self, call_id: str) -> str:
        if is_call_id(call_id):
            return call_id
        if call_id not in self._made:
            self._made[call_id] = self._make(call_id)
        return self._made[call_id]

    def _make(self, call_id: str) -> str:
        attempt = 0
        while (made := _short(f"{call_id}#{attempt}" if attempt else call_id)) in self._used:
            attempt += 1
        self._used.add(made)
        return made


def is_call_id(call_id: str) -> bool:
    return len(call_id) == ID_LENGTH and call_id.isascii() and call_id.isalnum()


def _short(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    letters = []
    for _ in range(ID_LENGTH):
        number, letter = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return "".join(letters)


class _Writer:
    def __init__(self, messages: list[dict[str, Any]], mapped: Mapped, keep_bare_thinking: bool) -> None:
        self._messages = messages
        self._mapped = mapped
        self._keep_bare_thinking = keep_bare_thinking
        self._ids = CallIds(_ids_in(messages))
        self._noted: set[str] = set()

    def messages(self) -> Iterator[dict[str, Any]]:
        made = [self._message(message, index) for index, message in enumerate(self._messages)]
        sent = [message for message in made if not _is_silent(message)]
        previous, last = "", len(sent) - 1
        for index, written in enumerate(sent):
            if written["role"] == "system" and (index == last or (previous, "system") in _REFUSED_ORDERS):
                # Instructions stand before the first answer; a later one becomes a turn of the user at its place.
                written["role"] = "user"
                if previous not in ("", "system"):
                    written["content"] = _instruction(written.get("content"))
            if (previous, written["role"]) in _REFUSED_ORDERS:
                yield {"role": "assistant", "content": "OK"}
            if written["role"] == "assistant" and index == last and "tool_calls" not in written:
                # The answer continues the last message, as Mistral requires: "Expected last role User or Tool (or
                # Assistant with prefix True)".
                written["prefix"] = True
            previous = written["role"]
            yield written

    def _message(self, message: dict[str, Any], index: int) -> dict[str, Any]:
        role = "system" if message["role"] == "developer" else message["role"]
        if role not in _FIELDS:
            raise self._mapped.refuse("messages", f"messages[{index}]: Mistral has no role {role!r}")
        written = {name: message[name] for name in _FIELDS[role] if name in message}
        written["role"] = role
        if isinstance(written.get("content"), list):
            written["content"] = [self._part(part, index) for part in written["content"]]
        if role == "assistant":
            self._assistant(written, message, index)
        elif role == "tool":
            written["tool_call_id"] = self._ids.of(str(message.get("tool_call_id") or ""))
        for name in ("name", "is_error"):
            if message.get(name) and name not in written:
                self._note(f"messages.{name}")
        return written

    def _assistant(self, written: dict[str, Any], message: Mapping[str, Any], index: int) -> None:
        calls = message.get("tool_calls")
        if calls:
            written["tool_calls"] = [self._call(call, f"{index}.{number}") for number, call in enumerate(calls)]
        else:
            written.pop("tool_calls", None)
        parts = original_parts(message.get("provider_specific_fields"), written.get("content"))
        if parts is not None:
            written["content"] = parts
        thinking = list(self._thinking(message))
        if not written.get("content") and not calls and isinstance(message.get("refusal"), str):
            written["content"] = message["refusal"]
        content = written.get("content")
        if thinking:
            texts = [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
            written["content"] = [*thinking, *texts]

    def _call(self, call: Mapping[str, Any], place: str) -> dict[str, Any]:
        function = call.get("function")
        if not isinstance(function, Mapping):
            raise self._mapped.refuse("messages", "tool_calls: Mistral can call functions only")
        return {
            "id": self._ids.of(str(call.get("id") or place)),
            "type": "function",
            "function": {"name": function.get("name") or "", "arguments": function.get("arguments") or "{}"},
        }

    def _thinking(self, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        details = message.get("reasoning_details") or message.get("thinking_blocks")
        bare = message.get("reasoning_content") or message.get("reasoning")
        texts: list[str] = []
        if isinstance(details, list) and details:
            for detail in details:
                if not isinstance(detail, Mapping) or detail.get("format") != FORMAT:
                    continue
                texts.append(str(detail.get("text") or ""))
                if detail.get("signature"):
                    yield {**_think(texts), "signature": detail["signature"]}
                    texts = []
        elif self._keep_bare_thinking and isinstance(bare, str) and bare:
            texts = [bare]
        if texts:
            yield _think(texts)

    def _part(self, part: Any, index: int) -> Any:
        kind = part.get("type") if isinstance(part, Mapping) else None
        match kind:
            case "text" | "refusal":
                return {"type": "text", "text": part.get("text") or part.get("refusal") or ""}
            case "tool_reference":
                return {"type": "text", "text": tool_reference_text(part)}
            case "image_url":
                return {"type": "image_url", "image_url": part.get("image_url")}
            case "document_url":
                return _document(part)
            case "file":
                return self._file(part, index)
            case "input_audio":
                audio = part.get("input_audio")
                sound = audio.get("data") if isinstance(audio, Mapping) else audio
                if not sound:
                    raise self._mapped.refuse("messages", f"messages[{index}]: sound without data")
                return {"type": "input_audio", "input_audio": sound}
            case "video_url":
                raise self._mapped.refuse("messages", f"messages[{index}]: Mistral takes no films")
        if isinstance(part, dict) and "cache_control" in part:
            return {name: value for name, value in part.items() if name != "cache_control"}
        return part

    def _file(self, part: Mapping[str, Any], index: int) -> dict[str, Any]:
        file = part.get("file")
        if not isinstance(file, Mapping):
            return {"type": "file", "file_id": part.get("file_id")}
        if file.get("file_id"):
            return {"type": "file", "file_id": file["file_id"]}
        data = file.get("file_data")
        if not isinstance(data, str) or not data:
            raise self._mapped.refuse("messages", f"messages[{index}]: a file needs file_data or file_id")
        if data[:11].lower() == "data:image/":
            return {"type": "image_url", "image_url": data}
        return _named({"type": "document_url", "document_url": data}, file.get("filename"))

    def _note(self, part: str) -> None:
        if part not in self._noted:
            self._noted.add(part)
            self._mapped.drop(part)


def _instruction(content: Any) -> Any:
    if isinstance(content, str):
        return marked(content)
    return [
        {**part, "text": marked(str(part.get("text") or ""))} if part.get("type") == "text" else part
        for part in content or ()
    ]


def _document(part: Mapping[str, Any]) -> dict[str, Any]:
    """The gateway has an object with a url, Mistral the address as a string."""
    document = part.get("document_url")
    url = document.get("url") if isinstance(document, Mapping) else document
    name = part.get("document_name") or part.get("name") or part.get("title")
    return _named({"type": "document_url", "document_url": url}, name)


def _named(document: dict[str, Any], name: Any) -> dict[str, Any]:
    return {**document, "document_name": name} if isinstance(name, str) and name else document


def _think(texts: list[str]) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": "".join(texts)}]}


def _ids_in(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield str(call.get("id") or "")
        yield str(message.get("tool_call_id") or "")
