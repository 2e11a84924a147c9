"""Converts messages to a provider's form: blocks that one vendor signed, encrypted or marked are useless to another,
and most vendors refuse unknown fields."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from integrations.providers.base import ChatRequest, Media
from integrations.providers.common.conversation import tool_reference_text
from integrations.providers.common.search import find
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.openai.cache_markers import fit_markers
from integrations.providers.openai.dialect import (
    ANY_FORMAT,
    OPENAI_PARAMETERS,
    Dialect,
    Documents,
    History,
    Images,
    is_one_of,
)
from integrations.providers.openai.instructions import with_one_system_message
from integrations.providers.openai.limits import fit_message
from integrations.providers.openai.shapes import whole_arguments

Fields = dict[str, Any]

# A fallback carries over the common fields of a message; reasoning is handled separately.
_COMMON_FIELDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"})
_MARKERS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_CALL_FIELDS = frozenset({"id", "type", "function", "index"}) | _MARKERS
_REASONING_FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
# `provider_specific_fields` holds other vendors' content, which the gateway gives to clients and takes back.
_SPECIFIC = "provider_specific_fields"
_FOREIGN_FIELDS = frozenset({"thinking_blocks", "is_error", _SPECIFIC})
_HISTORY_MARKS = (b"reasoning", b"thinking_blocks", b"extra_content", b"is_error")
_SPECIFIC_MARK = b"provider_specific_fields"
# Arguments of a call without parameters, as sloppy vendors write them and clients send them back.
_NO_ARGUMENTS = re.compile(rb'"arguments"\s*:\s*(?:null|"(?:\s|\\[nrt])*")')
_MEDIA_KINDS = frozenset({"image_url", "document_url", "file", "input_audio", "video_url"})
_ATTACHED = "Attached: the result of tool call "


class MessageRules:
    """The rules of one dialect for messages.

    Most requests need none, which their bytes show: `rewrite` has work only if `may_concern` returns True, `addresses`
    only if the body contains one of `marks_of_fetched`.
    """

    __slots__ = ("_dialect", "_is_strict", "_marks", "_marks_of_history", "marks_of_fetched")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        # A server of an unknown kind gets the client's request unchanged, unless the client meant another provider.
        self._is_strict = dialect.reasoning_formats not in (None, ANY_FORMAT)
        self._marks = _marks_of_parts(dialect)
        self._marks_of_history = _marks_of_history(dialect, is_strict=self._is_strict)
        self.marks_of_fetched = _marks_of_fetched(dialect)

    @property
    def marks(self) -> tuple[bytes, ...]:
        """Every body that may need changes contains one of these."""
        return (*self._marks, *self.marks_of_fetched, b'"assistant"')

    def may_concern(self, request: ChatRequest) -> bool:
        """True if a direct request may need changes, with false positives only. It runs for every request: a generator
        in the loop would double its cost."""
        body = request.body
        for mark in self._marks:
            if find(body, mark) >= 0:
                return True
        return find(body, b'"assistant"') >= 0 and self._may_concern_history(request)

    def _may_concern_history(self, request: ChatRequest) -> bool:
        body = request.body
        for mark in self._marks_of_history:
            if find(body, mark) >= 0:
                return True
        if find(body, b'"arguments"') >= 0 and _NO_ARGUMENTS.search(body):
            return True
        if self._takes_tool_media(request) or find(body, b"tool_call_id") < 0:
            return False
        return find(body, b'_url"') >= 0 or find(body, b'"file"') >= 0

    def _takes_tool_media(self, request: ChatRequest) -> bool:
        dialect = self._dialect
        return dialect.tool_media and not (dialect.is_open and request.is_translated)

    def addresses(self, messages: list[Any]) -> tuple[str, ...]:
        dialect = self._dialect
        found = []
        for part in _all_parts(messages):
            kind = str(part.get("type"))
            fetched = (kind == "document_url" and dialect.documents is Documents.FILE_DATA) or (
                kind == "image_url" and dialect.images is Images.DATA_ONLY
            )
            if fetched and _is_address(url := _address(part.get(kind))):
                found.append(url)
        return tuple(dict.fromkeys(found))

    def rewrite(self, messages: list[Any], request: ChatRequest) -> list[Any]:
        if request.is_translated and not self._dialect.system_anywhere:
            messages = with_one_system_message(messages)
        rewritten: list[Any] = []
        waiting: list[Any] = []  # `waiting` holds media of tool results until the last result is written.
        for message in messages:
            if not isinstance(message, Mapping):
                rewritten.append(message)
                continue
            if waiting and message.get("role") != "tool":
                rewritten.append({"role": "user", "content": waiting})
                waiting = []
            made = self._message(message, request)
            if message.get("role") == "tool":
                made["content"] = _with_joined_references(message.get("content"), made.get("content"))
                if not self._takes_tool_media(request):
                    waiting += _take_media(made)
            rewritten.append(made)
        if waiting:
            rewritten.append({"role": "user", "content": waiting})
        return rewritten

    def _message(self, message: Mapping[str, Any], request: ChatRequest) -> Fields:
        made = self._without_state(message, request)
        if made.get("role") == "developer" and (request.crosses_vendor or not self._dialect.developer_role):
            made["role"] = "system"
        content = made.get("content")
        if isinstance(content, list):
            made["content"] = [self._part(part, request) for part in content]
        return made

    def _without_state(self, message: Mapping[str, Any], request: ChatRequest) -> Fields:
        made = dict(message)
        if request.is_foreign:
            kept = _COMMON_FIELDS | _REASONING_FIELDS | _MARKERS
            made = {name: value for name, value in message.items() if name in kept}
        elif self._is_strict:
            made = {name: value for name, value in message.items() if name not in _FOREIGN_FIELDS}
        else:
            made.pop(_SPECIFIC, None)  # No look-alike sends `provider_specific_fields`, so they are another vendor's.
        if not self._dialect.message_names:
            made.pop("name", None)
        if self._fits_markers(request):
            made = dict(fit_markers(made, self._dialect))
        if made.get("role") == "assistant" and (request.is_foreign or self._is_strict):
            self._fit_reasoning(made, request)
        elif self._dialect.history is History.BOTH:
            _name_reasoning_twice(made)
        self._fit_calls(made, request)
        if request.is_foreign:
            fit_message(made)
        return made

    def _fit_calls(self, made: Fields, request: ChatRequest) -> None:
        calls = made.get("tool_calls")
        if isinstance(calls, list):
            if self._fits_markers(request):
                calls = [self._call(call, request) for call in calls]
            made["tool_calls"] = [_with_arguments(call, "function") for call in calls]
        if made.get("function_call"):
            made |= _with_arguments({"function_call": made["function_call"]}, "function_call")

    def dropped(self, messages: list[Any]) -> tuple[str, ...]:
        """Names the left-out parts of these messages that change the answer in degree. A tool's name is known from its
        call."""
        if self._dialect.message_names or not any(_has_name(message) for message in messages):
            return ()
        return (f"messages.name: dropped, {self._dialect.provider} has no counterpart",)

    def _fits_markers(self, request: ChatRequest) -> bool:
        return request.is_foreign or not self._dialect.is_open

    def _call(self, call: Any, request: ChatRequest) -> Any:
        if not isinstance(call, Mapping):
            return call
        fitted = fit_markers(call, self._dialect)
        if not request.is_foreign:
            if not self._is_strict:
                return fitted
            return {name: value for name, value in fitted.items() if name != "extra_content"}
        if call.get("type") == "custom" and self._dialect.parameters >= OPENAI_PARAMETERS:
            return {name: value for name, value in fitted.items() if name in _CALL_FIELDS or name == "custom"}
        if not isinstance(call.get("function"), Mapping):
            raise self._refused(f"tool calls of type {call.get('type')!r}")
        return {name: value for name, value in fitted.items() if name in _CALL_FIELDS}

    def _fit_reasoning(self, made: Fields, request: ChatRequest) -> None:
        details = made.pop("reasoning_details", None)
        formats = self._dialect.reasoning_formats or ()
        if isinstance(details, list):
            # The start of the format is compared, since the SDK's own helper joins the formats of all fragments of a
            # stream to one text.
            own = [part for part in details if formats == ANY_FORMAT or _format(part).startswith(formats)]
            if own:
                made["reasoning_details"] = own
        match self._dialect.history:
            case History.KEEP:
                return
            case History.BOTH:
                _name_reasoning_twice(made)
                return
            case History.PASS | History.WITH_TOOLS if not request.crosses_vendor:
                return
            case History.WITH_TOOLS if made.get("tool_calls"):
                made.pop("reasoning", None)
                return
        text, name = made.pop("reasoning_content", None), made.pop("reasoning", None)
        renamed = self._dialect.history is History.RENAME and is_one_of(request.family, self._dialect.reasoning_models)
        if renamed and (name or text):
            made["reasoning"] = name or text

    def _part(self, part: Any, request: ChatRequest) -> Any:
        if not isinstance(part, Mapping):
            return part
        if self._fits_markers(request):
            part = fit_markers(part, self._dialect)
        match part.get("type"):
            case "image_url":
                return self._image(part, request)
            case "document_url":
                return self._document(part, request)
            case "file":
                return self._file(part, request)
            case "tool_reference":
                return {"type": "text", "text": tool_reference_text(part)}
        return part

    def _image(self, part: Mapping[str, Any], request: ChatRequest) -> Any:
        if self._dialect.images is Images.REFUSE:
            raise self._refused("images")
        url = _address(image := part.get("image_url"))
        if self._dialect.images is Images.URL or not _is_address(url):
            return part
        data = _data_url(self._fetched_file(url, request))
        return {**part, "image_url": {**image, "url": data} if isinstance(image, Mapping) else {"url": data}}

    def _document(self, part: Mapping[str, Any], request: ChatRequest) -> Any:
        way = self._dialect.documents
        if way is Documents.PASS:
            return part
        url = _address(part.get("document_url"))
        if not url:
            raise UnsupportedParameterError(
                "messages", "document_url needs an object with a url", provider=self._dialect.provider
            )
        if way is Documents.REFUSE:
            raise self._refused("documents")
        name = str(part.get("name") or part.get("title") or "") or _file_name(url)
        if way is Documents.PLAIN:
            return {"type": "document_url", "document_url": url}
        if way is Documents.SONAR:
            return _sonar_file(url, name)
        if way is Documents.FILE_DATA and _is_address(url):
            # Chat completions take file data or an uploaded file: https://platform.openai.com/docs/guides/pdf-files.
            url = _data_url(self._fetched_file(url, request))
        made = {"type": "file", "file": {"filename": name, "file_data": url}}
        return {**made, **{name: part[name] for name in _MARKERS if name in part}}

    def _file(self, part: Mapping[str, Any], request: ChatRequest) -> Any:
        """OpenAI's own part, which look-alikes do not know. A part without data names a file that was uploaded to the
        provider which the client asked for."""
        way, file = self._dialect.documents, part.get("file")
        data = file.get("file_data") if isinstance(file, Mapping) else None
        if not isinstance(file, Mapping) or not isinstance(data, str):
            if request.crosses_vendor:
                raise self._refused("files that were uploaded elsewhere")
            return part
        if way is Documents.REFUSE:
            raise self._refused("documents")
        if way is Documents.SONAR:
            return _sonar_file(data, str(file.get("filename") or "") or _file_name(data))
        return part

    def _fetched_file(self, url: str, request: ChatRequest) -> Media:
        media = request.media.get(url)
        if media is None:
            raise self._refused("files by address")
        return media

    def _refused(self, part: str) -> UnsupportedParameterError:
        return UnsupportedParameterError(
            "messages", f"{self._dialect.provider} does not take {part}", provider=self._dialect.provider
        )


def _name_reasoning_twice(made: Fields) -> None:
    text = made.get("reasoning") or made.get("reasoning_content")
    if isinstance(text, str) and text:
        made["reasoning"] = made["reasoning_content"] = text


def _with_arguments(call: Any, name: str) -> Any:
    """Arguments must be JSON text: servers decode them, and fail at an empty one."""
    function = call.get(name) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments.strip():
        return call
    return {**call, name: {**function, "arguments": whole_arguments(arguments)}}


def _has_name(message: Any) -> bool:
    return isinstance(message, Mapping) and bool(message.get("name")) and message.get("role") != "tool"


def _marks_of_fetched(dialect: Dialect) -> tuple[bytes, ...]:
    marks = []
    if dialect.documents is Documents.FILE_DATA:
        marks.append(b'"document_url"')
    if dialect.images is Images.DATA_ONLY:
        marks.append(b'"image_url"')
    return tuple(marks)


def _marks_of_history(dialect: Dialect, *, is_strict: bool) -> tuple[bytes, ...]:
    if is_strict:
        return (_SPECIFIC_MARK, *_HISTORY_MARKS)
    return (_SPECIFIC_MARK, b"reasoning") if dialect.history is History.BOTH else (_SPECIFIC_MARK,)


def _marks_of_parts(dialect: Dialect) -> tuple[bytes, ...]:
    marks = []
    if dialect.documents is not Documents.PASS:
        marks.append(b'"document_url"')
    if dialect.documents in (Documents.REFUSE, Documents.SONAR):
        marks.append(b'"file"')
    if dialect.images is not Images.URL:
        marks.append(b'"image_url"')
    if not dialect.developer_role:
        marks.append(b'"developer"')
    if not dialect.message_names:
        marks.append(b'"name"')
    return tuple(marks)


def _all_parts(messages: list[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, list):
            yield from (part for part in content if isinstance(part, Mapping))


def _with_joined_references(content: Any, written: Any) -> Any:
    """Joins the `written` parts of a tool's result if `content` refers to tools: many servers take no list there."""
    if not isinstance(content, list) or not any(_is_reference(part) for part in content):
        return written
    texts = [part["text"] for part in written if part.keys() == {"type", "text"}]
    return "\n".join(texts) if len(texts) == len(written) else written


def _is_reference(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "tool_reference"


def _take_media(message: Fields) -> list[Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    media = [part for part in content if isinstance(part, Mapping) and str(part.get("type")) in _MEDIA_KINDS]
    if not media:
        return []
    call = str(message.get("tool_call_id") or "")
    texts = [part for part in content if part not in media]
    message["content"] = texts or f"{_ATTACHED}{call} follows."
    return [{"type": "text", "text": f"{_ATTACHED}{call}."}, *media]


def _format(detail: Any) -> str:
    return str(detail.get("format") or "") if isinstance(detail, Mapping) else ""


def _address(holder: Any) -> str:
    url = holder.get("url") if isinstance(holder, Mapping) else holder
    return url if isinstance(url, str) else ""


def _is_address(url: str) -> bool:
    return url[:8].lower().startswith(("http://", "https://"))


def _data_url(media: Media) -> str:
    return f"data:{media.media_type};base64,{base64.b64encode(media.data).decode()}"


def _sonar_file(url: str, name: str) -> Fields:
    """Perplexity takes base64 without the head of a data URL: https://docs.perplexity.ai/guides/file-attachments"""
    bare = url if _is_address(url) else url.partition(",")[2] or url
    return {"type": "file_url", "file_url": {"url": bare}, "file_name": name}


def _file_name(url: str) -> str:
    if url.startswith("data:"):
        return "document.pdf" if url.startswith("data:application/pdf") else "document"
    return url.partition("?")[0].rpartition("/")[2] or "document"
