"""Records of a rollout, and their classification in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from analytics.queries.variants.by_record import Recorded
from analytics.queries.variants.by_user import UnitLimits
from analytics.request_log.record import Outcome, RequestRecord
from core.errors import ApplicationError, ValidationError
from gateway.errors import (
    BudgetExceededError,
    CredentialUnreadableError,
    GuardrailError,
    InternalError,
    LowQualityError,
    ModelNotFoundError,
    ProviderFailedError,
    ProviderRejectedError,
    ProviderUnavailableError,
    RateLimitedError,
    UnsupportedError,
)
from prompts.errors import InvalidVariableError, MissingVariableError, UnknownVariableError
from rollouts.evaluation.statistics.grid import bin_of
from tests.factories.analytics import make_entry, store_as_of_then

START = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)


PROJECT, ROLLOUT = uuid4(), uuid4()


MINUTE = int(START.timestamp()) // 60


LIMITS = UnitLimits(latency_cap_ms=50_000.0, slow_bin=bin_of(30_000), cost_cap=5e8, eased_bin=bin_of(40_000))


def record(second: float, **values: Any) -> dict[str, Any]:
    """Returns a request that came so many seconds after the start."""
    defaults = {
        "ts": int((START + timedelta(seconds=second)).timestamp() * 1_000_000),
        "project_id": str(PROJECT),
        "rollout_id": str(ROLLOUT),
        "rollout_stage": 1,
        "variant": "target",
        "alloc_unit": 2**63 + 5,
        "ttft_ms": 7,
    }
    return {**defaults, **values}


def failed(error: ApplicationError, **values: Any) -> dict[str, Any]:
    fields = {"status_code": error.status, "error_type": error.type, "error_code": error.code}
    return {"outcome": Outcome.ERROR, "provider": "", **fields, **values}


def refused(error: type[ApplicationError], code: str, **values: Any) -> dict[str, Any]:
    return failed(error("no", code=code), **values)


def stored(spool: Path, *values: dict[str, Any]) -> list[RequestRecord]:
    entries = [make_entry(**one) for one in values]
    store_as_of_then(spool, *entries)
    return [entry.record for entry in entries]


def rows(first: int = 0, last: int = 10, *, rollout: UUID = ROLLOUT, **values: Any) -> Recorded:
    """Returns the rows recorded in these minutes after the start."""
    start, end = (START + timedelta(minutes=number) for number in (first, last))
    return Recorded(PROJECT, rollout, START, start, end, **values)


ENDS: list[tuple[str, dict[str, Any], bool, str, bool, bool]] = [
    # Each entry has the end of a request, its row, and whether it is a request, why it is unanswered, whether it is
    # judged, and whether it failed.
    ("answered", {}, True, "", True, False),
    ("answered, cut at max_tokens", {"finish_reason": "length"}, True, "", True, False),
    ("answered, against its schema", {"contract_violation": True}, True, "", True, False),
    ("answered by another model", {"fallback_used": True, "other_used": True}, True, "", True, False),
    ("answered by another deployment", {"fallback_used": True}, True, "", True, False),
    ("answered with nothing", {"empty_answer": True}, True, "", True, False),
    ("variable missing", failed(MissingVariableError("name", "is required")), True, "missing_variable", False, False),
    ("variable wrong", failed(InvalidVariableError("name", "is no text")), True, "missing_variable", False, False),
    ("variable unknown", failed(UnknownVariableError("name", "is not used")), True, "missing_variable", False, False),
    ("personal data", refused(GuardrailError, "pii_detected"), False, "", False, False),
    ("injection", refused(GuardrailError, "prompt_injection"), False, "", False, False),
    ("topic of the request", refused(GuardrailError, "blocked_topic"), False, "", False, False),
    ("too long", refused(GuardrailError, "prompt_too_long"), True, "guardrail", False, False),
    ("tool of the request", refused(GuardrailError, "blocked_tool"), True, "guardrail", False, False),
    (
        "topic of the answer",
        refused(GuardrailError, "blocked_topic", provider="openai"),
        True,
        "guardrail",
        False,
        False,
    ),
    ("tool of the answer", refused(GuardrailError, "blocked_tool", provider="openai"), True, "guardrail", False, False),
    ("graded too low", failed(LowQualityError("no"), provider="openai"), True, "low_quality", False, False),
    ("no such model", failed(ModelNotFoundError("no")), True, "model_not_found", False, False),
    ("no such model there", failed(ModelNotFoundError("no"), provider="openai"), True, "model_not_found", False, False),
    ("limit of requests", failed(RateLimitedError("no")), False, "", False, False),
    ("limit of tokens", refused(RateLimitedError, "tokens_per_minute"), True, "tokens_per_minute", False, False),
    ("month's budget", failed(BudgetExceededError("no")), False, "", False, False),
    ("session's budget", refused(BudgetExceededError, "session_budget_exceeded"), True, "budget", False, False),
    ("from the cache", {"cache_status": "hit"}, False, "", False, False),
    ("answer of the other arm in the cache", {"question_cached": True}, False, "", False, False),
    (
        "failed although the cache has an answer",
        failed(ProviderUnavailableError("no"), provider="openai", question_cached=True),
        False,
        "",
        False,
        False,
    ),
    ("no such parameter", failed(UnsupportedError("no"), provider="openai"), True, "provider_refused", False, False),
    ("rejected", failed(ProviderRejectedError("no"), provider="openai"), True, "provider_refused", True, True),
    ("too long there", refused(ValidationError, "context_length_exceeded"), True, "provider_refused", True, True),
    ("filtered before", refused(ValidationError, "content_filter"), True, "provider_refused", True, True),
    ("filtered after", {"finish_reason": "content_filter"}, True, "provider_refused", True, True),
    ("provider failed", failed(ProviderFailedError("no"), provider="openai"), True, "provider_failed", True, True),
    ("provider away", failed(ProviderUnavailableError("no"), provider="openai"), True, "provider_failed", True, True),
    ("timeout", refused(ProviderUnavailableError, "provider_timeout"), True, "provider_failed", True, True),
    ("no quota", refused(ProviderUnavailableError, "insufficient_quota"), True, "provider_failed", True, True),
    ("credentials", failed(CredentialUnreadableError("no")), True, "provider_failed", True, True),
    (
        "stream broke",
        failed(ProviderUnavailableError("no"), status_code=200, provider="openai"),
        True,
        "provider_failed",
        True,
        True,
    ),
    ("gateway failed", failed(InternalError("no")), True, "gateway_failed", True, True),
    ("client's own fault", failed(ValidationError("no")), True, "invalid_request", False, False),
    ("worker stopped", {"outcome": Outcome.INTERRUPTED, "status_code": 500}, True, "interrupted", True, True),
    (
        "left before the first output",
        {"outcome": Outcome.CANCELLED, "status_code": 499, "ttft_ms": 0},
        True,
        "client_left",
        False,
        False,
    ),
    (
        "left late",
        {"outcome": Outcome.CANCELLED, "status_code": 499, "latency_ms": 4001},
        True,
        "client_left",
        False,
        False,
    ),
    ("left soon", {"outcome": Outcome.CANCELLED, "status_code": 499, "latency_ms": 4000}, True, "", False, False),
]


ELSEWHERE: list[dict[str, Any]] = [
    {"alloc_fallback": True},
    {"alloc_unit": 0},
    {"variant": ""},
    {"rollout_id": str(uuid4())},
    {"project_id": str(uuid4())},
]


def at(r: RequestRecord) -> int:
    """Returns the time at which a row was recorded, in Unix milliseconds."""
    return (r.ts + r.latency_ms * 1000) // 1000


def minute_of(r: RequestRecord) -> int:
    return at(r) // 60_000


def with_variant(records: Iterable[RequestRecord], last: int = 10, first: int = -99) -> list[RequestRecord]:
    """Returns the requests that got a version of the rollout, whether they were allocated to it or not."""

    def belongs(r: RequestRecord) -> bool:
        mine = r.project_id == str(PROJECT) and r.rollout_id == str(ROLLOUT) and r.variant in ("target", "baseline")
        return mine and first <= minute_of(r) - MINUTE < last

    return sorted(filter(belongs, records), key=lambda r: (at(r), r.ts, r.request_id))


def within(records: Iterable[RequestRecord], last: int = 10, first: int = -99) -> list[RequestRecord]:
    return [r for r in with_variant(records, last, first) if r.alloc_unit and not r.alloc_fallback]


def is_hit(r: RequestRecord) -> bool:
    return r.cache_status == "hit"


def is_request(r: RequestRecord) -> bool:
    return counts(r) and not r.question_cached


def counts(r: RequestRecord) -> bool:
    limited = r.error_code in ("requests_per_minute", "monthly_budget_exceeded")
    texts = r.error_code in ("pii_detected", "prompt_injection", "blocked_topic") and not r.provider
    return not (is_hit(r) or limited or texts)


def is_unanswered(r: RequestRecord, long_wait_ms: float = 10_000) -> bool:
    left = r.outcome == Outcome.CANCELLED and (not r.ttft_ms or r.latency_ms > long_wait_ms)
    bad = r.outcome in (Outcome.ERROR, Outcome.INTERRUPTED) or r.finish_reason == "content_filter"
    return is_request(r) and (left or bad)


def is_uncompared(r: RequestRecord) -> bool:
    return counts(r) and r.question_cached


def is_failed(r: RequestRecord) -> bool:
    codes = ("provider_rejected", "context_length_exceeded", "content_filter")
    server = not 400 <= r.status_code < 500 or r.error_code in codes
    bad = r.outcome in (Outcome.ERROR, Outcome.INTERRUPTED) and server
    return is_request(r) and (bad or r.finish_reason == "content_filter")


def is_judged(r: RequestRecord) -> bool:
    return is_request(r) and (r.outcome == Outcome.SUCCESS or is_failed(r))


def is_answered(r: RequestRecord) -> bool:
    return r.outcome == Outcome.SUCCESS and is_request(r)


def cost_units(r: RequestRecord) -> int:
    return int(Decimal(r.cost_usd or 0) * 10**10)


def value_of(metric: str, r: RequestRecord) -> float | None:
    """Returns the value of a request in a metric, or None when the metric leaves it out."""
    if metric == "unanswered":
        return float(is_unanswered(r)) if is_request(r) else None
    if metric == "errors":
        return float(is_failed(r)) if is_judged(r) else None
    if not is_answered(r) or (metric == "cost" and not r.cost_known):
        return None
    if metric in SIGNALS:
        return float(SIGNALS[metric](r))
    if metric == "slow":
        return float(bin_of(r.latency_ms) > LIMITS.slow_bin)
    if metric == "eased":
        return float(bin_of(r.latency_ms) > LIMITS.eased_bin)
    return float(r.latency_ms) if metric == "latency" else float(cost_units(r))


def left_out(r: RequestRecord) -> str:
    """Returns why a request of a variant does not count at all, empty when it does."""
    if not r.alloc_unit:
        return "forced"
    if r.alloc_fallback:
        return "other_unit"
    if is_hit(r):
        return "cache_hit"
    return "" if counts(r) else r.error_code


SIGNALS: dict[str, Callable[[RequestRecord], bool]] = {
    "answered": is_answered,
    "contract": lambda r: is_answered(r) and r.contract_violation,
    "truncated": lambda r: is_answered(r) and r.finish_reason == "length",
    "fallback": lambda r: is_answered(r) and r.other_used,
    "empty": lambda r: is_answered(r) and r.empty_answer,
    "stopped": lambda r: is_request(r) and r.outcome == Outcome.CANCELLED and r.ttft_ms > 0,
    "uncompared": is_uncompared,
}
"""The counts of a minute that are true of single requests."""

METRICS = ("unanswered", "errors", "slow", "contract", "truncated", "fallback", "empty", "latency", "cost")
