"""Stage 4: input guardrails, for contents that a project forbids in requests (docs/guardrails.md).

The stage runs only if the project's `trust_mode` is not off. In `monitor` all findings are recorded and the request
goes on; in `enforce` the first check that finds something refuses the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from django.conf import settings

from core.errors import ValidationError
from gateway.errors import GuardrailError
from gateway.guardrails.checks import Finding, InputCheck, Request, checks_of
from gateway.guardrails.spotlight import Spotlight
from gateway.guardrails.verdicts import Guardrail, GuardrailAction, GuardrailStage, GuardrailVerdict
from gateway.pipeline.context import RequestContext, RequestState
from gateway.pipeline.native import FORM, without_native
from gateway.pipeline.prompt import variables_of
from gateway.pipeline.reservation import prompt_tokens
from gateway.project_settings.guardrails import TrustMode
from gateway.protocol.wire import LazyFields, Message
from integrations.providers.usage import estimated_tokens

# A smaller body is checked on the event loop, since a thread costs more than it saves; a larger one in a thread, since
# other streams of the worker would wait (docs/guardrails.md). RE2 releases the interpreter lock while it searches.
_THREAD_BYTES = 4 * 1024
_threads = ThreadPoolExecutor(2, thread_name_prefix="guardrails")
# Some texts take a second for each megabyte, so large bodies have a thread of their own, in which only others wait.
_LARGE_BYTES = 256 * 1024
_threads_of_large = ThreadPoolExecutor(1, thread_name_prefix="guardrails-large")

_decode_own = msgspec.json.Decoder(dict[str, Any]).decode


async def guard_input(context: RequestContext, state: RequestState) -> RequestContext:
    """Returns the request as it may go on, and adds the findings to `state.verdicts`.

    Raises GuardrailError (400), and ValidationError (400) for a text that no check can read.
    """
    guardrails = context.snapshot.settings.guardrails
    checks = checks_of(guardrails)
    enforced = guardrails.trust_mode is TrustMode.ENFORCE
    if checks:
        if enforced and context.native is not None and context.native.opaque:
            raise ValidationError(context.native.opaque, code="unsupported_parameter")
        request = _checked_part(context, state)
        size = len(context.body)
        if size < _THREAD_BYTES:
            findings = _findings(checks, request, stop_at_first=enforced)
        else:
            loop = asyncio.get_running_loop()
            threads = _threads if size < _LARGE_BYTES else _threads_of_large
            findings = await loop.run_in_executor(threads, _findings, checks, request, enforced)
        note_findings(findings, state, enforced=enforced)
    changed, marked = spotlit(context)
    if marked:
        state.injected_bytes += len(changed.body) - len(context.body)
        detail = f"{marked} texts"
        state.verdicts += (
            GuardrailVerdict(Guardrail.SPOTLIGHTING, GuardrailStage.INPUT, GuardrailAction.CHANGED, detail),
        )
    return changed


def spotlit(context: RequestContext) -> tuple[RequestContext, int]:
    guardrails = context.snapshot.settings.guardrails
    if guardrails.trust_mode is not TrustMode.ENFORCE or not guardrails.spotlighting_enabled:
        return context, 0
    key = f"{settings.SECRET_KEY}:spotlight:{context.snapshot.id_text}".encode()
    spotlight = Spotlight(key, guardrails.delimiters)
    body = spotlight.apply(context.body)
    if not spotlight.marked:
        return context, 0
    request = msgspec.structs.replace(context.request, messages=_messages(body))
    changed = msgspec.structs.replace(without_native(context), body=body, request=request, fields=LazyFields(body))
    return changed, spotlight.marked


def findings_of(context: RequestContext, state: RequestState) -> list[Finding]:
    guardrails = context.snapshot.settings.guardrails
    enforced = guardrails.trust_mode is TrustMode.ENFORCE
    if enforced and context.native is not None and context.native.opaque:
        raise ValidationError(context.native.opaque, code="unsupported_parameter")
    return _findings(checks_of(guardrails), _checked_part(context, state), enforced)


def _checked_part(context: RequestContext, state: RequestState) -> Request:
    """Of a request that the service composes, only the typed texts and the names of its tools are checked."""
    variables = variables_of(context) if state.prompt.version else {}
    if state.origin.typed is None:
        delimiters = context.snapshot.settings.guardrails.delimiters
        own = _own_fields(context)
        return Request(context.fields, prompt_tokens(context), variables, own, delimiters=delimiters)
    messages = [{"role": "user", "content": text} for text in state.origin.typed]
    tokens = estimated_tokens(sum(len(text.encode("utf-8", "replace")) for text in state.origin.typed))
    return Request({"messages": messages, "tools": context.fields.get("tools")}, tokens, variables, {})


def _own_fields(context: RequestContext) -> Mapping[str, Any] | None:
    body = context.native.body if context.native is not None else None
    return None if body is None or body.startswith(FORM) else _decode_own(body)


def _findings(checks: Iterable[InputCheck], request: Request, stop_at_first: bool) -> list[Finding]:
    findings: list[Finding] = []
    for check in checks:
        findings += check.inspect(request)
        if findings and stop_at_first:
            break
    return findings


def note_findings(findings: list[Finding], state: RequestState, *, enforced: bool) -> None:
    if not findings:
        return
    action = GuardrailAction.BLOCKED if enforced else GuardrailAction.FLAGGED
    seen = {(found.guardrail, found.detail): found for found in findings}.values()
    state.verdicts += tuple(
        GuardrailVerdict(found.guardrail, GuardrailStage.INPUT, action, found.detail, found.score) for found in seen
    )
    if enforced:
        raise GuardrailError(findings[0].message, code=_code(findings[0].guardrail))


def _code(guardrail: Guardrail) -> str:
    return "pii_detected" if guardrail is Guardrail.PII else guardrail.value


class _Messages(msgspec.Struct):
    messages: list[Message]


def _messages(body: bytes) -> list[Message]:
    return msgspec.json.decode(body, type=_Messages).messages
