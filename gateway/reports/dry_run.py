"""A dry run of guardrails: what settings would have found and refused in a project's past requests.

The checks are those of the pipeline's input stage, over the bodies that the request log kept. Nothing is sent, changed
or recorded.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from analytics.queries.sampled_requests import Sample, SampledRequest, request_bodies, sample_requests
from core.errors import ValidationError
from gateway.guardrails.checks import InputCheck, Request, checks_of, prepare_checks
from gateway.guardrails.evaluation import confidence_interval
from gateway.guardrails.verdicts import Guardrail
from gateway.pipeline.reservation import tokens_of_prompt
from gateway.project_settings.guardrails import GuardrailSettings
from gateway.protocol.marked_documents import Delimiters
from gateway.protocol.wire import LazyFields, decode_request

DEFAULT_DAYS, MAX_DAYS = 7, 30
DEFAULT_INPUTS, MAX_INPUTS = 1_000, 5_000
# The time after which a dry run ends with what it has looked at. A page waits for it.
MAX_SECONDS = 5.0

# Requests that the product itself makes are checked in part only, so that a dry run leaves them out.
_SOURCE = "gateway"
_BODIES_AT_ONCE = 50
_EXAMPLES = 5
_DETAILS = 10


@dataclass
class RuleTally:
    """Counts the requests in which one guardrail found something, and those that it would have refused as the first.

    `details` counts what was found by kind, topic, tool or rule.
    """

    found: int = 0
    refused: int = 0
    details: Counter[str] = field(default_factory=Counter)
    examples: list[UUID] = field(default_factory=list)


@dataclass
class DryRun:
    """The result over the requests whose bodies were read.

    `refused_before` counts the refused requests that a guardrail refused at the time, too.
    """

    inputs: int = 0
    without_content: int = 0
    unreadable: int = 0
    refused: int = 0
    refused_before: int = 0
    rules: dict[Guardrail, RuleTally] = field(default_factory=dict)

    def add(self, checks: tuple[InputCheck, ...], request: SampledRequest, body: bytes, delimiters: Delimiters) -> None:
        try:
            looked_at = _request_of(body, delimiters)
            findings = [finding for check in checks for finding in check.inspect(looked_at)]
        except (ValidationError, msgspec.DecodeError, LookupError):
            self.unreadable += 1
            return
        self.inputs += 1
        if not findings:
            return
        self.refused += 1
        self.refused_before += request.error_code in _CODES
        for guardrail in {finding.guardrail for finding in findings}:
            tally = self.rules.setdefault(guardrail, RuleTally())
            tally.found += 1
            if len(tally.examples) < _EXAMPLES:
                tally.examples.append(request.request_id)
        for guardrail, detail in {(finding.guardrail, finding.detail) for finding in findings}:
            self.rules[guardrail].details[detail] += 1
        self.rules[findings[0].guardrail].refused += 1


_CODES = frozenset({*(guardrail.value for guardrail in Guardrail), "pii_detected"})


def run_dry(
    project_id: UUID,
    settings: GuardrailSettings,
    *,
    days: int = DEFAULT_DAYS,
    max_inputs: int = DEFAULT_INPUTS,
    max_seconds: float = MAX_SECONDS,
) -> dict[str, Any]:
    """Returns what the settings would have found and refused in the last `days`, whatever their `trust_mode`.

    Checks a sample of at most `max_inputs` requests, for about `max_seconds` at most. Raises AnalyticsUnavailableError
    and AnalyticsLimitError.
    """
    deadline = time.monotonic() + max_seconds
    end = datetime.now(UTC)
    start = end - timedelta(days=days)
    prepare_checks(settings)
    checks, delimiters = checks_of(settings), settings.delimiters
    sample = sample_requests(project_id, start, end, source=_SOURCE, limit=max_inputs)
    result, looked_at = DryRun(), 0
    for request, body in _bodies(project_id, sample) if checks else ():
        if body is None:
            result.without_content += 1
        else:
            result.add(checks, request, body, delimiters)
        looked_at += 1
        if time.monotonic() > deadline:
            break
    complete = looked_at == len(sample.requests) or not checks
    return _wire(result, sample, start, end, names=_rules_of(settings), complete=complete)


def _bodies(project_id: UUID, sample: Sample) -> Iterator[tuple[SampledRequest, bytes | None]]:
    for first in range(0, len(sample.requests), _BODIES_AT_ONCE):
        chosen = sample.requests[first : first + _BODIES_AT_ONCE]
        bodies = request_bodies(project_id, chosen)
        for request in chosen:
            yield request, bodies.get(request.request_id)


def _request_of(body: bytes, delimiters: Delimiters) -> Request:
    """Lacks a managed prompt and variables in headers, which the request log does not keep."""
    request = decode_request(body)
    variables = request.prompt_variables or {}
    return Request(LazyFields(body), tokens_of_prompt(body, request), variables, delimiters=delimiters)


def _rules_of(settings: GuardrailSettings) -> list[Guardrail]:
    on: Mapping[Guardrail, bool] = {
        Guardrail.PROMPT_TOO_LONG: settings.max_prompt_tokens is not None,
        Guardrail.BLOCKED_TOOL: bool(settings.blocked_tools),
        Guardrail.BLOCKED_TOPIC: bool(settings.blocked_input_topics),
        Guardrail.PII: settings.pii_block_on_detect,
        Guardrail.PROMPT_INJECTION: settings.prompt_injection_detection,
    }
    return [guardrail for guardrail, is_on in on.items() if is_on]


def _wire(
    result: DryRun, sample: Sample, start: datetime, end: datetime, *, names: list[Guardrail], complete: bool
) -> dict[str, Any]:
    return {
        "start_date": start,
        "end_date": end,
        "request_count": sample.total,
        "input_count": result.inputs,
        "without_content_count": result.without_content,
        "unreadable_count": result.unreadable,
        "is_complete": complete,
        **_share("refused", result.refused, result.inputs),
        "refused_before_count": result.refused_before,
        "rules": [_rule(name, result.rules.get(name, RuleTally()), result.inputs) for name in names],
    }


def _rule(guardrail: Guardrail, tally: RuleTally, inputs: int) -> dict[str, Any]:
    return {
        "guardrail": guardrail.value,
        **_share("found", tally.found, inputs),
        **_share("refused", tally.refused, inputs),
        "details": [
            {"detail": detail, "count": count}
            # The tokens of a long prompt differ from request to request, so that a count of each says nothing.
            for detail, count in tally.details.most_common(_DETAILS)
            if guardrail is not Guardrail.PROMPT_TOO_LONG
        ],
        "examples": list(tally.examples),
    }


def _share(name: str, count: int, inputs: int) -> dict[str, Any]:
    low, high = confidence_interval(count, inputs)
    return {
        f"{name}_count": count,
        f"{name}_share": count / inputs if inputs else 0.0,
        f"{name}_share_low": low,
        f"{name}_share_high": high,
    }
