from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.conf import settings

from core.redis.clients import shared_client
from core.redis.failures import REDIS_ERRORS, reason
from integrations.access.deployments import Deployment
from integrations.errors import HealthUnavailableError
from integrations.health.circuit import SHARE_TO_OPEN, Circuit
from integrations.health.keys import circuit_key, models_key, slice_key
from integrations.health.messages import decode_counts, decode_record
from integrations.health.summary import summarize
from integrations.health.targets import CircuitState, TargetHealth
from integrations.health.window import Counts, current_slices, total
from integrations.sandbox.behaviours import BEHAVIOURS
from integrations.selectors import read_deployments

logger = logging.getLogger("integrations.health")

# At most 200 models of each integration are read, those with the latest outcomes.
_MODELS = 200
_SANDBOX_ID = 0
_ANSWER_SECONDS = 1.0


class HealthStatus(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class ModelHealth:
    model: str
    status: HealthStatus
    health: TargetHealth


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """The health of a provider, or of one of several deployments there. `health` covers all of its models together; its
    `circuit` has no meaning."""

    provider: str
    status: HealthStatus
    health: TargetHealth
    models: tuple[ModelHealth, ...]
    deployment: str = ""


def project_health(project_id: UUID, *, now: float | None = None) -> list[ProviderHealth]:
    """Returns one row for each usable integration of the project, by provider and name, also without samples. `now` is
    in Unix seconds. Raises HealthUnavailableError if Redis does not answer."""
    at = time.time() if now is None else now
    integrations = {one.credentials.integration_id: one for one in read_deployments(project_id)[0]}
    try:
        found = _read(list(integrations), at)
    except REDIS_ERRORS as error:
        logger.warning("reading.failed error=%s", reason(error))
        raise HealthUnavailableError("The live figures are not available: Redis does not answer.") from error
    rows = [_provider(one, found[integration_id]) for integration_id, one in integrations.items()]
    return sorted(rows, key=lambda row: (row.provider, row.deployment))


_Models = dict[str, tuple[Counts, CircuitState]]


def _read(integration_ids: Sequence[int], now: float) -> dict[int, _Models]:
    numbers = current_slices(now)
    client = shared_client(settings.REDIS_URL, seconds=_ANSWER_SECONDS)
    with client.pipeline(transaction=False) as batch:
        for integration_id in integration_ids:
            batch.zrevrangebyscore(models_key(integration_id), "+inf", numbers[0], start=0, num=_MODELS)
        named = list(zip(integration_ids, batch.execute(), strict=True))
    listed = [(integration_id, name.decode()) for integration_id, names in named for name in sorted(names)]
    listed = [(integration_id, model) for integration_id, model in listed if _may_show(integration_id, model)]
    with client.pipeline(transaction=False) as batch:
        for integration_id, model in listed:
            batch.get(circuit_key(integration_id, model))
            for number in numbers:
                batch.hgetall(slice_key(integration_id, model, number))
        replies = iter(batch.execute())
    found: dict[int, _Models] = {integration_id: {} for integration_id in integration_ids}
    for integration_id, model in listed:
        state = _state(next(replies), now)
        found[integration_id][model] = total(decode_counts(next(replies)) for _ in numbers), state
    return found


def _may_show(integration_id: int, model: str) -> bool:
    """All projects share the sandbox, so a model name that it does not know is hidden: a client, perhaps of another
    project, made it up."""
    return integration_id != _SANDBOX_ID or model in BEHAVIOURS


def _state(record: bytes | None, now: float) -> CircuitState:
    circuit = Circuit()
    known = decode_record(record) if record is not None else None
    if known is not None:
        circuit.adopt(known)
    return circuit.state(now)


def _provider(deployment: Deployment, models: Mapping[str, tuple[Counts, CircuitState]]) -> ProviderHealth:
    rows = [_model(model, counts, state) for model, (counts, state) in models.items()]
    health = summarize(total(counts for counts, _ in models.values()), CircuitState.CLOSED)
    status = _provider_status(health, rows)
    return ProviderHealth(deployment.provider, status, health, tuple(rows), deployment.name)


def _model(model: str, counts: Counts, state: CircuitState) -> ModelHealth:
    health = summarize(counts, state)
    if state is CircuitState.OPEN:
        status = HealthStatus.DOWN
    else:
        is_troubled = _is_failing(health) or state is CircuitState.HALF_OPEN
        status = HealthStatus.DEGRADED if is_troubled else HealthStatus.HEALTHY
    return ModelHealth(model, status, health)


def _is_failing(health: TargetHealth) -> bool:
    """Routing needs ten outcomes before it moves traffic away; what is shown is unhealthy once half of the calls
    failed, however few."""
    return health.degraded or (health.outcomes > 0 and health.error_share >= SHARE_TO_OPEN)


def _provider_status(health: TargetHealth, rows: Iterable[ModelHealth]) -> HealthStatus:
    """Down if the circuits of all models are open; degraded if one is open, none is healthy, or the error share is too
    large."""
    states = [row.status for row in rows]
    if states and all(status is HealthStatus.DOWN for status in states):
        return HealthStatus.DOWN
    is_troubled = HealthStatus.DOWN in states or (states and HealthStatus.HEALTHY not in states)
    return HealthStatus.DEGRADED if is_troubled or _is_failing(health) else HealthStatus.HEALTHY
