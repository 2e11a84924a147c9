"""Removes the marks of documents (docs/guardrails.md#documents-in-messages): no provider knows the field."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.pipeline.context import RequestContext
from gateway.pipeline.native import FORM
from gateway.protocol.marked_documents import UNTRUSTED, without_marks
from gateway.protocol.wire import LazyFields
from integrations.providers.common.search import find

MARK = b'"%s"' % UNTRUSTED.encode()
# The conversation stands in these fields, in a chat completion and in the other protocols.
_CONVERSATION = ("messages", "input", "system")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def without_document_marks(context: RequestContext) -> RequestContext:
    native = context.native
    if native is not None and native.body is not None and find(native.body, MARK) >= 0:
        native = msgspec.structs.replace(native, body=_without_marks(native.body))
        context = msgspec.structs.replace(context, native=native)
    if find(context.body, MARK) < 0:
        return context
    body = _without_marks(context.body)
    return msgspec.structs.replace(context, body=body, fields=LazyFields(body))


def _without_marks(body: bytes) -> bytes:
    if body.startswith(FORM):
        return body
    fields: dict[str, Any] = {**_decode(body)}
    for name in _CONVERSATION:
        if name in fields:
            fields[name] = without_marks(_decode_any(fields[name]))
    return _encode(fields)
