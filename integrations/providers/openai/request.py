from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from integrations.providers.base import NOTHING, ChatRequest, Needs
from integrations.providers.common.search import find
from integrations.providers.openai.account import RawFields
from integrations.providers.openai.cache_markers import fit_tools, mark_of_markers
from integrations.providers.openai.dialect import Dialect, Documents, is_one_of
from integrations.providers.openai.messages import MessageRules
from integrations.providers.openai.parameters import OWN_FIELDS, adjust, handled_fields

__all__ = ["OWN_FIELDS", "BodyBuilder", "Documents"]

_NOT_IN_PLAIN = (*OWN_FIELDS, "thinking")
_ESCAPE = rb"\u"
_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class BodyBuilder:
    """Computes everything that does not depend on the request once per dialect."""

    __slots__ = ("_mark_of_markers", "_marks", "_messages", "_of_interest", "dialect")

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._of_interest = handled_fields(dialect)
        self._messages = MessageRules(dialect)
        self._mark_of_markers = mark_of_markers(dialect)
        self._marks = _marks_of_changes(self._of_interest, self._mark_of_markers)

    @property
    def marks_of_fetched(self) -> tuple[bytes, ...]:
        """Every body with files to fetch contains one of these."""
        return self._messages.marks_of_fetched

    @property
    def marks(self) -> tuple[bytes, ...]:
        """Every plain body that must change, or for which files must be fetched, contains one of these."""
        return tuple(dict.fromkeys((*self._marks, *self._messages.marks)))

    def needs(self, request: ChatRequest) -> Needs:
        addresses = self._messages.addresses(msgspec.json.decode(_decode(request.body)["messages"]))
        return Needs(media=addresses) if addresses else NOTHING

    def build(self, request: ChatRequest, *, stream_options: bool = True) -> tuple[bytes, tuple[str, ...]]:
        """Returns the body and the warnings. Copies values that stay as bytes, and does not read `request.fields`,
        which may be lazy. Raises UnsupportedParameterError."""
        body = request.body
        if self._stays(request):
            return body, ()
        raw = _decode(body)
        warnings: tuple[str, ...] = ()
        changed = self._is_anothers(request) or not self._of_interest.isdisjoint(raw)
        if changed:
            warnings = adjust(raw, request, self.dialect)
        if raw.get("model") != (model := _raw_name(request.model)):
            raw["model"] = model
            changed = True
        if request.stream:
            if stream_options and self.dialect.stream_options:
                sent = raw.get("stream_options")
                raw["stream_options"] = _INCLUDE_USAGE if sent is None else _with_usage(sent)
                changed = True
            elif raw.pop("stream_options", None) is not None:
                changed = True
        if not self.dialect.message_names and find(body, b'"name"') >= 0:
            warnings += self._messages.dropped(msgspec.json.decode(raw["messages"]))
        changed |= self._fit_messages(raw, request)
        return (_encode(raw) if changed else body), warnings

    def _stays(self, request: ChatRequest) -> bool:
        """True if nothing has to change, so that the request need not be decoded; false negatives are possible."""
        if not request.is_plain or request.stream or self._is_anothers(request):
            return False
        body = request.body
        for mark in self._marks:
            if find(body, mark) >= 0:
                return False
        return not self._messages.may_concern(request)

    def _is_anothers(self, request: ChatRequest) -> bool:
        """Whether the request may have unknown parameters. Those of a plain request of another protocol are common to
        all models but the reasoning ones."""
        if request.crosses_vendor or not request.is_translated:
            return request.crosses_vendor
        return not request.is_plain or is_one_of(request.family, self.dialect.reasoning_models)

    def _fit_messages(self, raw: RawFields, request: ChatRequest) -> bool:
        body = request.body
        if request.crosses_vendor or (request.is_translated and not request.is_plain):
            return self._rewrite_messages(raw, request)
        if self._mark_of_markers and find(body, self._mark_of_markers) >= 0:
            return self._fit_tools(raw) | self._rewrite_messages(raw, request)
        return self._messages.may_concern(request) and self._rewrite_messages(raw, request)

    def _fit_tools(self, raw: RawFields) -> bool:
        tools = msgspec.json.decode(raw["tools"]) if "tools" in raw else None
        fitted = fit_tools(tools, self.dialect)
        if fitted == tools:
            return False
        raw["tools"] = msgspec.Raw(_encode(fitted))
        return True

    def _rewrite_messages(self, raw: RawFields, request: ChatRequest) -> bool:
        messages = msgspec.json.decode(raw["messages"])
        rewritten = self._messages.rewrite(messages, request)
        if rewritten == messages:
            return False
        raw["messages"] = msgspec.Raw(_encode(rewritten))
        return True


def _marks_of_changes(of_interest: frozenset[str], mark_of_markers: bytes) -> tuple[bytes, ...]:
    names = sorted(of_interest.difference(_NOT_IN_PLAIN))
    # A name may be written with escapes, which a search for it would miss.
    marks = [b'"%b"' % name.encode() for name in names] + ([_ESCAPE] if names else [])
    return (*marks, mark_of_markers) if mark_of_markers else tuple(marks)


@lru_cache(maxsize=1024)
def _raw_name(model: str) -> msgspec.Raw:
    return msgspec.Raw(_encode(model))


def _with_usage(raw: msgspec.Raw) -> msgspec.Raw:
    sent: Any = msgspec.json.decode(raw)
    if not isinstance(sent, Mapping) or not sent:
        return _INCLUDE_USAGE
    return msgspec.Raw(_encode({**sent, "include_usage": True}))
