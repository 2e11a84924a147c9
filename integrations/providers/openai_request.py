"""The body that goes upstream: the client's own bytes unless something has to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import NOTHING, ChatRequest, Needs
from integrations.providers.openai_dialect import Dialect, Documents
from integrations.providers.openai_messages import MessageRules
from integrations.providers.openai_parameters import OWN_FIELDS, RawFields, adjust, of_interest

__all__ = ["OWN_FIELDS", "BodyBuilder", "Documents"]

_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class BodyBuilder:
    """What one dialect needs to build its bodies, worked out once."""

    __slots__ = ("_messages", "_of_interest", "dialect")

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._of_interest = of_interest(dialect)
        self._messages = MessageRules(dialect)

    def needs(self, request: ChatRequest) -> Needs:
        """The addresses of files that this provider takes as data only."""
        if not self._messages.may_need_media(request.body):
            return NOTHING
        addresses = self._messages.addresses(msgspec.json.decode(_decode(request.body)["messages"]))
        return Needs(media=addresses) if addresses else NOTHING

    def build(self, request: ChatRequest, *, stream_options: bool = True) -> tuple[bytes, tuple[str, ...]]:
        """The body, and what was dropped from it, in words. Values that stay are copied as bytes, never decoded;
        `request.fields` is not looked at, since it may be lazy. Raises UnsupportedParameterError.
        """
        raw = _decode(request.body)
        warnings: tuple[str, ...] = ()
        changed = request.is_fallback or not self._of_interest.isdisjoint(raw)
        if changed:
            warnings = tuple(adjust(raw, request, self.dialect))
        if raw.get("model") != (model := msgspec.Raw(_encode(request.model))):
            raw["model"] = model
            changed = True
        if request.stream:
            changed |= self._ask_for_usage(raw, stream_options)
        if request.is_fallback or self._messages.may_concern(request.body):
            messages = msgspec.json.decode(raw["messages"])
            rewritten = self._messages.rewrite(messages, request)
            if rewritten != messages:
                raw["messages"] = msgspec.Raw(_encode(rewritten))
                changed = True
        return (_encode(raw) if changed else request.body), warnings

    def _ask_for_usage(self, raw: RawFields, stream_options: bool) -> bool:
        """Usage is always asked for where it can be; the client's other options stay. Whether something changed."""
        if not (stream_options and self.dialect.stream_options):
            return raw.pop("stream_options", None) is not None
        raw["stream_options"] = _with_usage(raw.get("stream_options"))
        return True


def _with_usage(raw: msgspec.Raw | None) -> msgspec.Raw:
    sent: Any = None if raw is None else msgspec.json.decode(raw)
    if not isinstance(sent, Mapping) or not sent:
        return _INCLUDE_USAGE
    return msgspec.Raw(_encode({**sent, "include_usage": True}))
