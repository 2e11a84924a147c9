from __future__ import annotations

import msgspec

from analytics.shipper.streamed import assembled
from gateway.pipeline.context import Attempt, NativeRequest, RequestContext, RequestState
from gateway.protocol.headers import client_headers
from gateway.protocol.reply import Reply
from gateway.protocol.wire import LazyFields
from integrations.providers.additions import with_parameters
from integrations.providers.base import ChatRequest
from integrations.providers.common.search import find
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.native import NativeAdapter, native_adapter

FORM = b"--"
"""The beginning of a multipart form, which no JSON has."""
_OWN_FIELDS = frozenset({"models", "provider", "prompt_config", "prompt_variables"})
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def translate(state: RequestState, reply: Reply) -> NativeRequest:
    """Replaces `state.body` by the equivalent chat completion, and returns the request in the client's own protocol.

    Raises ValidationError, which names the client's field.
    """
    native = read_native(state, reply)
    # Output guardrails read texts of models, of which an operation without chat completions gives none.
    guarded = state.snapshot.settings.guardrails.guards_output and not state.surface.native_only
    return msgspec.structs.replace(native, body=None) if guarded else native


def read_native(state: RequestState, reply: Reply) -> NativeRequest:
    body = state.body
    reply.request = request = state.surface.read(body)
    state.body = request.body
    if request.session_id and not state.headers.session_id:
        # A plan keeps the headers for the next request of the connection.
        state.headers = msgspec.structs.replace(state.headers, session_id=request.session_id)
    own = body if request.is_plain else native_body(state.surface.forwarded(body))
    return NativeRequest(
        state.surface,
        own,
        request.untranslatable,
        request.is_stateful,
        request.opaque,
        request.fields,
        is_plain=request.is_plain,
        is_translated=request.is_translated,
        warnings=request.warnings,
    )


def is_native_only(context: RequestContext) -> bool:
    return context.native is not None and context.native.surface.native_only


def native_of(context: RequestContext, attempt: Attempt) -> NativeAdapter | None:
    """Returns the adapter that forwards the client's own request; None if the provider gets a chat completion instead.

    Raises UnsupportedParameterError if a chat completion cannot express the request.
    """
    native = context.native
    if native is None:
        return None
    adapter, body = _speaker(native, attempt), native.body
    if adapter is not None and body is not None and _can_set(native, attempt, adapter) and adapter.takes(body):
        return adapter
    if native.untranslatable and not (adapter is not None and adapter.takes_own_fields):
        parameter, _, reason = native.untranslatable[0].partition(": ")
        raise UnsupportedParameterError(parameter, reason, provider=attempt.provider)
    return None


def native_counter(context: RequestContext, attempt: Attempt) -> NativeAdapter | None:
    native = context.native
    if native is None or native.body is None:
        return None
    adapter = _speaker(native, attempt)
    if adapter is None or not _can_set(native, attempt, adapter):
        return None
    return adapter if adapter.takes(native.body) else None


def _can_set(native: NativeRequest, attempt: Attempt, adapter: NativeAdapter) -> bool:
    credentials = attempt.credentials
    if not credentials.sets_parameters or native.surface.native_only:
        return True
    names = credentials.default_parameters.keys() | credentials.forced_parameters.keys()
    return adapter.parameters.issuperset(names)


def _speaker(native: NativeRequest, attempt: Attempt) -> NativeAdapter | None:
    adapter = native_adapter(attempt.provider, native.surface.operation)
    if adapter is None or not adapter.serves(attempt.model):
        return None
    return None if native.is_stateful and (attempt.is_fallback or not adapter.keeps_state) else adapter


def native_body(body: bytes) -> bytes:
    """Removes the fields that concern only the gateway; a body without them is returned byte for byte."""
    # Each of the names has one of these beginnings.
    if find(body, b'"prompt_') < 0 and find(body, b'"provider"') < 0 and find(body, b'"models"') < 0:
        return body
    # A form holds no such fields, since its surface refuses them.
    if body.startswith(FORM):
        return body
    fields = _decode(body)
    if _OWN_FIELDS.isdisjoint(fields):
        return body
    return _encode({name: value for name, value in fields.items() if name not in _OWN_FIELDS})


def as_chat_completion(state: RequestState, answer: bytes, *, stream: bool) -> bytes:
    adapter = native_adapter(state.routing.provider, state.surface.operation)
    if adapter is None:
        return b""
    made = adapter.as_chat(answer, stream=stream)
    return assembled(made) if stream else made


def native_request(context: RequestContext, attempt: Attempt, adapter: NativeAdapter, *, stream: bool) -> ChatRequest:
    native = context.native
    body, fields = (b"", None) if native is None else (native.body or b"", native.fields)
    if attempt.credentials.sets_parameters and not is_native_only(context):
        body, fields = with_parameters(body, attempt.credentials), None
    names = adapter.forward_headers
    headers = client_headers(context.headers.raw, names) if names else ()
    return ChatRequest(
        attempt.sent_model or attempt.model,
        stream,
        body,
        LazyFields(body),
        crosses_vendor=attempt.crosses_vendor,
        headers=headers,
        cache_markers=context.snapshot.settings.prompt_cache_markers,
        body_model="" if fields is None else fields["model"],
    )


def without_native(context: RequestContext) -> RequestContext:
    native = context.native
    if native is None or native.body is None:
        return context
    return msgspec.structs.replace(context, native=msgspec.structs.replace(native, body=None))
