"""Says in one sentence what happened to a request, in the product's own words: no text of a client is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from analytics.queries.requests import RequestDetailRow, RequestRow
from analytics.request_log.record import Outcome
from analytics.wire.attempts import AttemptEntry
from core.ui.formats import duration, money, number

# The attribute that holds the findings of guardrails (docs/guardrails.md).
_VERDICTS = "guardrails"
_MAX_FAILURES = 3
_NOT_CALLED = {
    "circuit_open": "{provider} was passed over, its circuit being open",
    "unsupported_parameter": "{provider} was passed over, as it cannot take this request",
}


class _Verdict(msgspec.Struct):
    guardrail: str = ""
    stage: str = ""
    action: str = ""


def sentence(row: RequestDetailRow, attempts: Sequence[AttemptEntry]) -> str:
    """Such as `openai answered 503 after 1.2 s, anthropic answered in 2.4 s; $0.0031, 1,234 tokens`."""
    happened = ", ".join([*_failures(attempts), _end(row, attempts)])
    return f"{happened}; {_figures(row, attempts)}."


def _failures(attempts: Sequence[AttemptEntry]) -> Iterator[str]:
    failed = [attempt for attempt in attempts if attempt["error"] and attempt["error"] not in _LEFT]
    for attempt in failed[:_MAX_FAILURES]:
        yield _failure(attempt)
    if len(failed) > _MAX_FAILURES:
        yield f"{len(failed) - _MAX_FAILURES} more attempts failed"


_LEFT = (Outcome.CANCELLED.value, Outcome.INTERRUPTED.value)


def _failure(attempt: AttemptEntry) -> str:
    provider, error = attempt["provider"], attempt["error"] or ""
    passed = duration(attempt["ended_ms"] - attempt["started_ms"])
    if error in _NOT_CALLED:
        return _NOT_CALLED[error].format(provider=provider)
    if attempt["status"] and attempt["status"] >= 300:
        return f"{provider} answered {attempt['status']} after {passed}"
    if error == "timeout":
        return f"{provider} did not answer within {passed}"
    return f"{provider} failed ({error.replace('_', ' ')}) after {passed}"


def _end(row: RequestDetailRow, attempts: Sequence[AttemptEntry]) -> str:
    if row.outcome == Outcome.CANCELLED:
        return f"the client disconnected after {duration(row.latency_ms)}"
    if row.outcome == Outcome.INTERRUPTED:
        return f"the worker stopped {duration(row.latency_ms)} after the request arrived"
    if row.outcome == Outcome.ERROR:
        return _error(row, attempts)
    if row.cache_status == "hit":
        return f"answered from the cache in {duration(row.latency_ms)}"
    answer = next((attempt for attempt in attempts if attempt["is_answer"]), None)
    if answer is None:
        return f"answered in {duration(row.latency_ms)}"
    first = answer["first_token_ms"]
    began = f", its first token after {duration(first - answer['started_ms'])}" if first else ""
    broken = " and broke the schema" if row.contract_violation else ""
    return f"{answer['provider']} answered in {duration(answer['ended_ms'] - answer['started_ms'])}{began}{broken}"


def _error(row: RequestDetailRow, attempts: Sequence[AttemptEntry]) -> str:
    code = row.error_code or row.error_type or "an error"
    guardrail = _refused_by(row)
    if not attempts:
        by = f"by the guardrail {guardrail}" if guardrail else f"with {row.status_code} {code}"
        return f"refused {by} before any provider was asked"
    if guardrail:
        return f"the answer was refused by the guardrail {guardrail}"
    return f"the client got {row.status_code} {code}"


def _refused_by(row: RequestDetailRow) -> str:
    try:
        verdicts = msgspec.json.decode(row.attributes.get(_VERDICTS) or "[]", type=list[_Verdict])
    except msgspec.DecodeError:
        return ""
    return next((verdict.guardrail for verdict in verdicts if verdict.action == "blocked"), "")


def _figures(row: RequestRow, attempts: Sequence[AttemptEntry]) -> str:
    cost = money(row.cost_usd) if row.cost_known else "cost unknown" if attempts else money(0)
    tokens = row.prompt_tokens + row.completion_tokens
    return f"{cost}, {number(tokens)} tokens" if tokens else cost
