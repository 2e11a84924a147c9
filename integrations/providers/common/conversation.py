"""Reads a request's messages as turns and blocks, the form of all other dialects.

Reasoning has the form of OpenRouter's `reasoning_details` (https://openrouter.ai/docs/use-cases/reasoning-tokens). Only
the vendor that signed or encrypted a block can use it, so an adapter takes the blocks of its own `format`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from integrations.providers.common.claude import CLAUDE
from integrations.providers.errors import UnsupportedParameterError

Role = Literal["user", "assistant", "system"]
_SYSTEM_ROLES = ("system", "developer")
# Data URLs without a media type are plain text (RFC 2397).
_DEFAULT_MEDIA_TYPE = "text/plain"
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_URL_ALPHABET = bytes.maketrans(b"-_", b"+/")


@dataclass(frozen=True, slots=True)
class Text:
    """`cache_control` is Anthropic's prompt-cache marker, or OpenAI's `prompt_cache_breakpoint` translated to it."""

    text: str
    cache_control: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image, document, audio or video, by address or as a data URL. `detail` is OpenAI's image detail."""

    kind: Literal["image", "document", "audio", "video"]
    url: str
    name: str = ""
    detail: str = ""
    cache_control: Mapping[str, Any] | None = None

    @property
    def is_inline(self) -> bool:
        return self.url[:5].lower() == "data:"


@dataclass(frozen=True, slots=True)
class Native(Attachment):
    """A content part in the vendor's own form, for adapters that accept such parts (see `read_conversation`)."""

    part: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is the JSON text as sent; `extra` holds vendor fields of the call, such as `extra_content`."""

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    cache_control: Mapping[str, Any] | None = None

    def arguments_object(self) -> dict[str, Any]:
        """Raises UnsupportedParameterError unless the arguments are a JSON object, which other dialects require."""
        try:
            decoded = msgspec.json.decode(self.arguments or "{}")
        except msgspec.DecodeError:
            decoded = None
        if not isinstance(decoded, dict):
            raise UnsupportedParameterError("messages", f"the arguments of tool call {self.id!r} are not a JSON object")
        return decoded


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`name` is the function's name, found through the call; empty if the history has no such call."""

    call_id: str
    name: str
    content: tuple[Text | Attachment, ...]
    is_error: bool = False
    cache_control: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """One entry of `reasoning_details`, or bare `reasoning_content` (then `format` and `signature` are empty).

    `data` is text that a provider encrypted. `id` is OpenRouter's: for Gemini the tool call that the signature belongs
    to. `index` is the entry's place in the answer, None if the client dropped it.
    """

    text: str = ""
    signature: str = ""
    data: str = ""
    format: str = ""
    id: str = ""
    index: int | None = None


Block = Text | Attachment | ToolCall | ToolResult | Reasoning
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Turn:
    """`role` is "system" for mid-conversation instructions, if `read_conversation` keeps places."""

    role: Role
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """`system` holds the system and developer messages in order: those before the first turn, and all others unless
    places are kept. Adjacent turns of one role are merged; tool results belong to the user's role."""

    system: tuple[Text, ...]
    turns: tuple[Turn, ...]

    def attachments(self) -> Iterator[Attachment]:
        for turn in self.turns:
            for block in turn.blocks:
                if isinstance(block, Attachment):
                    yield block
                elif isinstance(block, ToolResult):
                    yield from (part for part in block.content if isinstance(part, Attachment))

    def details(self) -> set[str]:
        return {attachment.detail for attachment in self.attachments()} - {"", "auto"}


# An `IsNative` function returns True for a content part of the vendor's own dialect, which passes unchanged.
IsNative = Callable[[Mapping[str, Any]], bool]
# A `Rebuild` function returns the blocks of an assistant's message in order, with the vendor's own blocks among them,
# from the fields that came with the message.
Rebuild = Callable[[Mapping[str, Any], list[Block]], list[Block]]


def read_conversation(
    fields: Mapping[str, Any],
    *,
    native: IsNative | None = None,
    keep_places: bool = False,
    rebuild: Rebuild | None = None,
) -> Conversation:
    """Parts that `native` accepts become `Native`, in place. `keep_places` turns later instructions into turns of role
    "system", for vendors that take them or for `instructions.as_user`. `rebuild` is called for each assistant's message
    with `provider_specific_fields`.

    Raises UnsupportedParameterError for a content part that only the OpenAI dialect knows.
    """
    system: list[Text] = []
    turns: list[tuple[Role, list[Block]]] = []
    names: dict[str, str] = {}
    for index, message in enumerate(fields["messages"]):
        role = message["role"]
        side: Role = "assistant" if role == "assistant" else "user"
        blocks: list[Block]
        if role not in _SYSTEM_ROLES:
            blocks = list(_blocks(message, index, names, native))
            if rebuild is not None and side == "assistant" and message.get("provider_specific_fields"):
                blocks = rebuild(message, blocks)
            blocks = _marked(blocks, message)
        elif keep_places and _is_begun(turns):
            side, blocks = "system", [*_system(message, index)]
        else:
            system += _system(message, index)
            continue
        if not blocks:
            continue
        if turns and turns[-1][0] == side:
            turns[-1][1].extend(blocks)
        else:
            turns.append((side, blocks))
    return Conversation(tuple(system), tuple(Turn(role, tuple(blocks)) for role, blocks in turns))


def _is_begun(turns: list[tuple[Role, list[Block]]]) -> bool:
    return any(not isinstance(block, Text) or block.text.strip() for _, blocks in turns for block in blocks)


def stored_content(
    message: Mapping[str, Any], blocks: Iterable[Block], is_block: Callable[[Any], bool]
) -> list[Mapping[str, Any]] | None:
    """The vendor's own blocks of an earlier answer, returned with its message. None if the field holds anything else
    (another vendor's blocks), or the message has files."""
    fields = message.get("provider_specific_fields")
    content = fields.get("content") if isinstance(fields, Mapping) else None
    if not isinstance(content, list) or not content or not all(map(is_block, content)):
        return None
    return None if any(isinstance(block, Attachment) for block in blocks) else content


def in_place(thoughts: list[tuple[int, Item]], others: list[Item]) -> list[Item]:
    """Puts thoughts at their original places: a signed thought must not be moved.

    None is left at the end, which Claude refuses; an answer that was cut off may end with one.
    """
    placed: list[Item] = []
    waiting = list(reversed(others))
    for index, thought in thoughts:
        while len(placed) < index and waiting:
            placed.append(waiting.pop())
        if not waiting:
            break
        placed.append(thought)
    return placed + waiting[::-1]


def with_distinct_ids(conversation: Conversation, allowed: Callable[[str], str]) -> Conversation:
    """Gives each call a distinct id in the form that `allowed` makes.

    Some vendors number each answer's calls anew or send no id, and others refuse repeated ids. A result belongs to the
    preceding call with its id.
    """
    used: set[str] = set()
    # `given` maps, within one turn, the client's id of a call to the ids that are sent.
    given: dict[str, list[str]] = {}
    turns = []
    for turn in conversation.turns:
        if turn.role == "assistant":
            given = {}
            turns.append(replace(turn, blocks=tuple(_called(block, given, used, allowed) for block in turn.blocks)))
        else:
            turns.append(replace(turn, blocks=tuple(_answered(block, given, allowed) for block in turn.blocks)))
    return replace(conversation, turns=tuple(turns))


def _called(block: Block, given: dict[str, list[str]], used: set[str], allowed: Callable[[str], str]) -> Block:
    if not isinstance(block, ToolCall):
        return block
    name, number = allowed(block.id), 2
    while name in used:
        name, number = allowed(f"{block.id}_{number}"), number + 1
    used.add(name)
    given.setdefault(block.id, []).append(name)
    return replace(block, id=name)


def _answered(block: Block, given: dict[str, list[str]], allowed: Callable[[str], str]) -> Block:
    if not isinstance(block, ToolResult):
        return block
    names = given.get(block.call_id) or [allowed(block.call_id)]
    return replace(block, call_id=names.pop(0) if len(names) > 1 else names[0])


def _system(message: Mapping[str, Any], index: int) -> list[Text]:
    parts: list[Block] = list(_parts(message, index, None))
    if any(not isinstance(part, Text) for part in parts):
        raise UnsupportedParameterError("messages", f"messages[{index}]: a system message carries text only")
    return [part for part in _marked(parts, message) if isinstance(part, Text)]


def data_url(url: str) -> tuple[str, bytes]:
    """The media type and bytes of a data URL (RFC 2397). Raises UnsupportedParameterError for anything else."""
    head, comma, body = url[5:].partition(",")
    if url[:5].lower() != "data:" or not comma:
        raise UnsupportedParameterError("messages", "a data URL has no data")
    media_type, _, options = head.partition(";")
    try:
        is_base64 = options.lower().endswith("base64")
        data = _decoded(body) if is_base64 else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        raise UnsupportedParameterError("messages", "a data URL holds no valid base64") from None
    return media_type.strip().lower() or _DEFAULT_MEDIA_TYPE, data


def sniffed(data: bytes) -> str:
    """The media type that a file's first bytes show, which vendors compare with the declared one; empty if none."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for start, media_type in _SIGNATURES if data.startswith(start)), "")


def _decoded(body: str) -> bytes:
    """Accepts base64 with line breaks, in the alphabet for URLs, or without padding. Raises ValueError for anything
    else."""
    compact = unquote_to_bytes(body).translate(_URL_ALPHABET, b" \t\r\n").rstrip(b"=")
    return base64.b64decode(compact + b"=" * (-len(compact) % 4), validate=True)


def _blocks(message: Mapping[str, Any], index: int, names: dict[str, str], native: IsNative | None) -> Iterator[Block]:
    if message["role"] in ("tool", "function"):
        yield _tool_result(message, index, names, native)
        return
    if message["role"] == "assistant":
        yield from _reasoning(message)
    yield from _parts(message, index, native)
    for call in message.get("tool_calls") or ():
        function = call.get("function")
        if not isinstance(function, Mapping):
            raise UnsupportedParameterError("messages", f"messages[{index}].tool_calls: only functions can be called")
        name = str(function.get("name") or "")
        names[str(call.get("id") or "")] = name
        arguments = function.get("arguments")
        yield ToolCall(
            id=str(call.get("id") or ""),
            name=name,
            arguments=arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode(),
            extra={key: value for key, value in call.items() if key not in ("id", "type", "function", "index")},
            cache_control=marker_of(call),
        )


def _marked(blocks: list[Block], message: Mapping[str, Any]) -> list[Block]:
    marker = marker_of(message)
    if marker and blocks:
        last = blocks[-1]
        if not isinstance(last, Reasoning) and not any(getattr(block, "cache_control", None) for block in blocks):
            blocks[-1] = replace(last, cache_control=marker)
    return blocks


def _tool_result(
    message: Mapping[str, Any], index: int, names: Mapping[str, str], native: IsNative | None
) -> ToolResult:
    call_id = str(message.get("tool_call_id") or "")
    return ToolResult(
        call_id=call_id,
        name=names.get(call_id) or str(message.get("name") or ""),
        content=tuple(_parts(message, index, native)),
        # `is_error` is not OpenAI's; clients written for Anthropic send it.
        is_error=message.get("is_error") is True,
        cache_control=marker_of(message),
    )


def _reasoning(message: Mapping[str, Any]) -> Iterator[Reasoning]:
    details = message.get("reasoning_details") or message.get("thinking_blocks")
    if isinstance(details, list) and details:
        for detail in details:
            if isinstance(detail, Mapping):
                yield _detail(detail)
        return
    text = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(text, str) and text:
        yield Reasoning(text=text)


def _detail(detail: Mapping[str, Any]) -> Reasoning:
    """Reads an entry of OpenRouter's, or Anthropic's blocks (`thinking`, `redacted_thinking`), which may also come
    under `thinking_blocks`."""
    own = detail.get("type") in ("thinking", "redacted_thinking")
    return Reasoning(
        text=str(detail.get("text") or detail.get("thinking") or detail.get("summary") or ""),
        signature=str(detail.get("signature") or ""),
        data=str(detail.get("data") or ""),
        format=str(detail.get("format") or (CLAUDE if own else "")),
        id=str(detail.get("id") or ""),
        index=index if isinstance(index := detail.get("index"), int) else None,
    )


def _parts(message: Mapping[str, Any], index: int, native: IsNative | None) -> Iterator[Text | Attachment]:
    # An answer that refuses has its text in the field `refusal`.
    content = message.get("content") or (message["role"] == "assistant" and message.get("refusal"))
    if isinstance(content, str):
        if content:
            yield Text(content, marker_of(message))
    elif isinstance(content, list):
        for number, part in enumerate(content):
            if native is not None and native(part):
                yield Native("document", "", part=part)
            else:
                yield _part(part, f"messages[{index}].content[{number}]")


def _part(part: Mapping[str, Any], where: str) -> Text | Attachment:
    kind, cache_control = part.get("type"), marker_of(part)
    match kind:
        case "text" | "refusal":
            return Text(str(part.get("text") or part.get("refusal") or ""), cache_control)
        case "tool_reference":
            return Text(tool_reference_text(part), cache_control)
        case "image_url":
            image = part["image_url"]
            detail = str(image.get("detail") or "") if isinstance(image, Mapping) else ""
            return Attachment("image", _url(image, where), detail=detail, cache_control=cache_control)
        case "document_url":
            name = str(part.get("name") or part.get("title") or "")
            return Attachment("document", _url(part["document_url"], where), name=name, cache_control=cache_control)
        case "video_url":
            return Attachment("video", _url(part["video_url"], where), cache_control=cache_control)
        case "file":
            return _file(part, where)
        case "input_audio":
            audio = part.get("input_audio")
            if not isinstance(audio, Mapping):
                raise UnsupportedParameterError("messages", f"{where}: sound has to carry its data in input_audio")
            sound = f"data:audio/{audio.get('format') or 'wav'};base64,{audio.get('data') or ''}"
            return Attachment("audio", sound, cache_control=cache_control)
    raise UnsupportedParameterError("messages", f"{where}: a part of type {kind!r} has no counterpart")


def tool_reference_text(part: Mapping[str, Any]) -> str:
    """The result of a tool search as text, for vendors without such a block. They are offered all tools, also those
    that Anthropic offers once found (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool).
    """
    return f"Tool available: {part.get('tool_name')}"


def _file(part: Mapping[str, Any], where: str) -> Attachment:
    file = part.get("file")
    data = file.get("file_data") if isinstance(file, Mapping) else None
    if not isinstance(file, Mapping) or not isinstance(data, str) or not data:
        raise UnsupportedParameterError("messages", f"{where}: a file has to carry its data in file_data")
    return Attachment("document", data, name=str(file.get("filename") or ""), cache_control=marker_of(part))


def marker_of(holder: Mapping[str, Any]) -> Mapping[str, Any] | None:
    marker = holder.get("cache_control")
    if isinstance(marker, Mapping):
        return marker
    return _breakpoint(holder.get("prompt_cache_breakpoint"))


def _breakpoint(point: Any) -> Mapping[str, Any] | None:
    """OpenAI's marker (https://developers.openai.com/api/docs/guides/prompt-caching) in Anthropic's form. OpenAI's
    lifetimes, half an hour and more, become an hour; without one the vendor's default applies."""
    if not isinstance(point, Mapping):
        return None
    return {"type": "ephemeral", "ttl": "1h"} if point.get("ttl") else {"type": "ephemeral"}


def _url(holder: Any, where: str) -> str:
    url = holder.get("url") if isinstance(holder, Mapping) else holder
    if not isinstance(url, str) or not url:
        raise UnsupportedParameterError("messages", f"{where}: an address is missing")
    return url
