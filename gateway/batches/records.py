"""Records each line of a batch's results as a request of its own, at batch prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.request_log.record import BATCH, Operation, Outcome, RequestRecord, SpoolEntry
from gateway.batches.places import Place
from gateway.models import StoredObject
from gateway.pipeline.record import cost_fields, repeatable_id
from gateway.snapshot.project import ProjectSnapshot
from integrations.pricing.answered import is_other_model
from integrations.pricing.batch_price import batch_cost
from integrations.pricing.cost import Cost, Price
from integrations.providers.common.batch_results import BatchResult
from integrations.providers.usage import Usage

_OPERATIONS = {
    "/v1/chat/completions": Operation.CHAT,
    "/v1/responses": Operation.RESPONSES,
    "/v1/embeddings": Operation.EMBEDDINGS,
    "/v1/completions": Operation.COMPLETIONS,
    "/v1/moderations": Operation.MODERATIONS,
    "/v1/images/generations": Operation.IMAGES,
    "/v1/messages": Operation.MESSAGES,
}
_CLIENT_CLOSED, _NOT_RUN = 499, 504
# Attributes are no place for long texts.
_MAX_ATTRIBUTE_CHARACTERS = 512


class LineRecords:
    def __init__(self, snapshot: ProjectSnapshot, place: Place, row: StoredObject, ts: int) -> None:
        self._snapshot, self.place, self._row, self.ts = snapshot, place, row, ts
        self._batch = row.batch_id or row.vendor_id
        self._operation = _OPERATIONS.get(row.endpoint, Operation.BATCHES)
        key = next((key for key in snapshot.keys.values() if key.id == row.api_key_id), None)
        self._attributes: Mapping[str, str] = {} if key is None else key.attributes

    def entry(self, result: BatchResult) -> tuple[SpoolEntry, Cost | None]:
        usage, row, requested = result.usage or Usage(), self._row, self._model_of(result)
        served = requested
        if is_other_model(requested, result.model) and self._price_of(result.model) is not None:
            served = result.model
        cost, usage = self._cost(result, usage, served), usage.in_all
        outcome, status = _outcome(result)
        record = RequestRecord(
            request_id=repeatable_id(self.ts // 1000, self._snapshot.id_text, self._batch, result.custom_id),
            project_id=self._snapshot.id_text,
            ts=self.ts,
            outcome=outcome,
            status_code=status,
            api_key_id=row.api_key_id,
            team_id=row.team_id,
            source=BATCH,
            operation=self._operation,
            is_native=True,
            session_id=row.session_id,
            user_id=row.user_id,
            provider=row.provider,
            model=served,
            requested_model=requested,
            finish_reason=result.finish_reason,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            tokens_estimated=usage.estimated,
            retention_days=self._snapshot.settings.retention_days,
            attributes={
                **self._attributes,
                "batch_id": self._batch,
                "custom_id": result.custom_id[:_MAX_ATTRIBUTE_CHARACTERS],
            },
            **cost_fields(cost),
            **_error(result, status),
        )
        kept = result.answer if self._snapshot.settings.log_content else b""
        return SpoolEntry(record, response=kept), cost

    def _price_of(self, model: str) -> Price | None:
        deployment = self.place.deployment
        own = deployment.prices.get(model) if deployment is not None else None
        return own or self._snapshot.price_of(self._row.provider, model)

    def _cost(self, result: BatchResult, usage: Usage, model: str) -> Cost | None:
        price = self._price_of(model)
        if price is None and result.model:
            price = self._price_of(result.model)
        if usage.is_billed:
            return batch_cost(usage, price, self._price_of)
        # What failed or never ran costs nothing, whether its model has a price or not.
        return None if price is None and not result.error_code else Cost()

    def _model_of(self, result: BatchResult) -> str:
        names = self._row.model_names
        return self.place.client_name(names[0] if len(names) == 1 else result.model)


def _outcome(result: BatchResult) -> tuple[Outcome, int]:
    if not result.error_code:
        return Outcome.SUCCESS, result.status
    if result.status:
        return Outcome.ERROR, result.status
    return (Outcome.CANCELLED, _CLIENT_CLOSED) if "cancel" in result.error_code else (Outcome.ERROR, _NOT_RUN)


def _error(result: BatchResult, status: int) -> Mapping[str, Any]:
    if not result.error_code:
        return {}
    return {
        "error_type": "invalid_request_error" if 400 <= status < 500 else "api_error",
        "error_code": result.error_code[:100],
        "error_message": result.error_message,
    }
