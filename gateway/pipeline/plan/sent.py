"""What the provider of a plan gets of a request."""

from __future__ import annotations

from gateway.pipeline.marked_documents import MARK
from gateway.pipeline.plan.plans import Plan
from gateway.pipeline.plan.sender import KnownSender
from gateway.protocol.headers import ClientHeaders
from gateway.protocol.plain import PlainRequest
from gateway.protocol.wire import ChatCompletionRequest, LazyFields, is_plain
from integrations.providers.additions import with_headers
from integrations.providers.base import NOTHING, ChatRequest, PassingAdapter
from integrations.providers.common.search import find
from integrations.transport.request_head import RequestHead, head_of

Sent = tuple[RequestHead, bytes]


def sent(request: ChatCompletionRequest, sender: KnownSender, body: bytes, plan: Plan) -> Sent | None:
    """Returns the head and the body of the provider's request, None where the stages have more to do than to forward
    the client's `body`. Raises ProviderError."""
    passed_on = plan.attempt.credentials.forwarded_names
    if (
        (passed_on and not passed_on.isdisjoint(sender.names))
        or request.stream
        or request.models is not None
        or request.provider is not None
        or request.prompt_config is not None
        or request.prompt_variables is not None
        or request.response_format is not None
    ):
        return None
    passed = sender.passed_on(plan.passed_names) if plan.passed_names else ()
    if request.model == plan.own_name and request.thinking is None and passed in plan.heads:
        # A managed prompt may have added tools to a request of plain form.
        is_plain_form = request.__class__ is PlainRequest and request.tools is None
        for mark in plan.marks_in_plain if is_plain_form else plan.marks:
            if find(body, mark) >= 0:
                break
        else:
            return plan.heads[passed], body  # The adapter would say the same.
    if find(body, MARK) >= 0:
        return None
    return _natively(request, passed, body, plan) if plan.is_native else _as_chat(request, body, plan)


def _as_chat(request: ChatCompletionRequest, body: bytes, plan: Plan) -> Sent | None:
    attempt, adapter = plan.attempt, plan.adapter
    if not isinstance(adapter, PassingAdapter):
        return None
    forwarded = adapter.forwarded(
        ChatRequest(
            plan.sent_model,
            False,
            body,
            LazyFields(body),
            max_output=attempt.max_output,
            cache_markers=plan.snapshot.settings.prompt_cache_markers,
            is_plain=request.model == plan.sent_model and is_plain(request, body),
            known_as=attempt.model if attempt.sent_model else "",
        )
    )
    return None if forwarded is None else (plan.heads[()], forwarded)


def _natively(request: ChatCompletionRequest, passed: ClientHeaders, body: bytes, plan: Plan) -> Sent | None:
    """Returns what a provider gets that speaks the client's protocol (`gateway.pipeline.native.native_request`)."""
    credentials, adapter = plan.attempt.credentials, plan.adapter
    asked = ChatRequest(
        plan.sent_model,
        False,
        body,
        LazyFields(body),
        headers=passed,
        cache_markers=plan.snapshot.settings.prompt_cache_markers,
        body_model=request.model,
    )
    if adapter.needs(asked, credentials) is not NOTHING:
        return None
    upstream = with_headers(adapter.build_request(asked, credentials), credentials)
    return None if upstream.warnings else (plan.add_head(passed, head_of(upstream)), upstream.body)
