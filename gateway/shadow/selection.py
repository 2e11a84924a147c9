from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from analytics.online_evaluations.sampling import Answered
from analytics.queries.bodies import get_payloads
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.request_samples import ShadowedRequest, shadowed_requests
from analytics.queries.requests import Payload
from core.errors import ApplicationError
from core.wire.storable import storable
from gateway.evaluations.highest_cost import highest_cost
from gateway.evaluations.rules import Evaluation
from gateway.evaluations.stored import read_stored
from gateway.experiments.candidates import Candidate, candidates_of
from gateway.experiments.draw import item_of_request
from gateway.experiments.requests import candidate_request
from gateway.guardrails.verdicts import VERDICTS, is_masked
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.playground.chat import FIELDS
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.snapshot.project import ProjectSnapshot
from gateway.tables.experiment import AnswerState
from gateway.tables.shadow import SkipReason

BASELINE, TARGET = 0, 1
"""The places of the candidates of a shadow."""
_MAX_LOOKED_AT = 200
"""Of a window so many requests are looked at; the others come too many."""


_HIT = "hit"
# What changes no answer, or is said to the gateway alone.
_HARMLESS = frozenset(
    {"model", "stream", "stream_options", "metadata", "store", "service_tier", "safety_identifier"}
    | {"prompt_cache_key", "prompt_cache_retention"}
)
_DEFAULTS: Mapping[str, Any] = {"n": 1, "parallel_tool_calls": True, "logprobs": False}
# Tools of these types are executed by whoever asked; a provider executes all others by itself.
_CALLED_BY_CLIENTS = ("function", "custom")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Shadowed:
    fields: Mapping[str, Any]
    message: Mapping[str, Any]


def skipped_by_facts(row: ShadowedRequest | None) -> SkipReason | None:
    if row is None:
        return SkipReason.NO_TEXT
    if row.is_no_store:
        return SkipReason.NO_STORE
    if is_masked(row.verdicts):
        return SkipReason.MASKED
    if row.cache_status == _HIT:
        return SkipReason.CACHED
    if row.has_header_variables:
        return SkipReason.NOT_REPEATABLE
    return None if row.prompt_preview else SkipReason.NO_TEXT


def read_shadowed(row: ShadowedRequest, request: str, response: str) -> Shadowed | SkipReason:
    stored = read_stored(request, response, finish_reason=row.finish_reason, completion_tokens=row.completion_tokens)
    if isinstance(stored, Evaluation):
        return SkipReason.NO_TEXT
    fields = _decode(request)
    if _has_provider_tools(fields.get("tools")):
        return SkipReason.PROVIDER_TOOLS
    if any(_counts(name, value) for name, value in fields.items()):
        return SkipReason.NOT_REPEATABLE
    return Shadowed(fields, stored.message)


def _has_provider_tools(tools: Any) -> bool:
    given = tools if isinstance(tools, list) else []
    return any(isinstance(one, dict) and one.get("type", "function") not in _CALLED_BY_CLIENTS for one in given)


def _counts(name: str, value: Any) -> bool:
    """Whether a field may have changed the answer and is not sent again."""
    if name in FIELDS or name in _HARMLESS:
        return False
    return value is not None and value != _DEFAULTS.get(name)


@dataclass(slots=True)
class Selection:
    taken: list[ExperimentAnswer] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def select_shadowed(experiment: Experiment, sampled: Sequence[Answered], *, room: int) -> Selection:
    """Keeps the sample's order; `room` is the most requests. Raises the errors of the store."""
    found = Selection()
    looked_at = sampled[:_MAX_LOOKED_AT] if room > 0 else []
    found.skipped[SkipReason.BACKLOG] += len(sampled) - len(looked_at)
    settings = project_settings(experiment.project_id)
    if not settings.log_content:
        found.skipped[SkipReason.NO_TEXT] += len(looked_at)
        return found
    rows = _usable(experiment.project_id, looked_at, found)
    found.skipped[SkipReason.BACKLOG] += len(rows[room:])
    chosen = rows[:room]
    if chosen:
        snapshot = load_models(experiment.project_id, load_prices(), settings)
        keys = [RequestCursor(row.ts, row.request_id) for row in chosen]
        reader = _Reader(experiment, snapshot, get_payloads(experiment.project_id, keys))
        for row in chosen:
            taken = reader.read(row)
            if isinstance(taken, SkipReason):
                found.skipped[taken] += 1
            else:
                found.taken.append(taken)
    return found


def _usable(project_id: UUID, sampled: Sequence[Answered], found: Selection) -> list[ShadowedRequest]:
    keys = [RequestCursor(one.ts, one.request_id) for one in sampled]
    rows = shadowed_requests(project_id, keys, verdicts=VERDICTS)
    usable: list[ShadowedRequest] = []
    for one in sampled:
        row = rows.get(one.request_id)
        reason = skipped_by_facts(row)
        if reason is not None:
            found.skipped[reason] += 1
        elif row is not None:
            usable.append(row)
    return usable


class _Reader:
    def __init__(self, experiment: Experiment, snapshot: ProjectSnapshot, bodies: Mapping[UUID, Payload]) -> None:
        self._project_id, self._snapshot, self._bodies = experiment.project_id, snapshot, bodies
        self._target: Candidate = candidates_of(experiment.candidates)[TARGET]

    def read(self, row: ShadowedRequest) -> ExperimentAnswer | SkipReason:
        bodies = self._bodies.get(row.request_id)
        shadowed = read_shadowed(row, bodies.request, bodies.response) if bodies is not None else SkipReason.NO_TEXT
        if isinstance(shadowed, SkipReason):
            return shadowed
        item = item_of_request(row)
        return self._refused(item, shadowed.fields) or _answer_of(item, row, shadowed)

    def _refused(self, item: ExperimentItem, fields: Mapping[str, Any]) -> SkipReason | None:
        try:
            request = candidate_request(self._project_id, item, fields, self._target)
        except ApplicationError:
            return SkipReason.NOT_REPEATABLE
        known = highest_cost(self._snapshot, request.body, request.version)
        return SkipReason.UNKNOWN_COST if known is None else None


def _answer_of(item: ExperimentItem, row: ShadowedRequest, shadowed: Shadowed) -> ExperimentAnswer:
    return ExperimentAnswer(
        item=item,
        candidate=BASELINE,
        state=AnswerState.ANSWERED,
        reused=True,
        request_id=str(row.request_id),
        provider=row.provider,
        model=row.model,
        prompt_version=row.prompt_version,
        answer=storable(dict(shadowed.message)),
        finish_reason=row.finish_reason,
        cost_usd=Decimal(row.cost_usd) if row.cost_known else None,
        latency_ms=row.latency_ms,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
    )
