"""Batches of OpenAI's dialect (https://platform.openai.com/docs/api-reference/batch)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from core.errors import ApplicationError, ValidationError
from core.processes.database_threads import in_database_thread
from gateway.batches import objects
from gateway.batches.call import StoredCall, path_of
from gateway.batches.exchange import Sent
from gateway.batches.files import listed
from gateway.batches.places import Place, place_of
from gateway.batches.requests import normal_endpoint
from gateway.errors import ModelNotAllowedError
from gateway.models import StoredObject
from gateway.surfaces.native_only import decoded
from gateway.tables.stored_object import ObjectKind

_BATCH = ObjectKind.BATCH
_PATH = "batches"
_PAGE = 20
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
# The provider is asked for so many batches of a list at a time.
_AT_ONCE = 8
_RESULTS = ("output_file_id", "error_file_id")


class _NewBatch(msgspec.Struct):
    input_file_id: str
    endpoint: str
    prompt_config: Any = None
    models: Any = None
    provider: Any = None


_NEW_BATCH = msgspec.json.Decoder(_NewBatch)


async def create(call: StoredCall) -> None:
    call.state.body = body = await call.read()
    fields = _read(body)
    file = await in_database_thread(objects.find, call.state.snapshot.project_id, ObjectKind.FILE, fields.input_file_id)
    place = place_of(call.state.snapshot, file.integration_id)
    _check_file(call, place, file, fields)
    await call.admit()
    body, value = await call.exchange(place).ask(Sent("POST", _PATH, body))
    row = call.new_row(
        place,
        _BATCH,
        value,
        endpoint=file.endpoint,
        model_names=file.model_names,
        lines=file.lines,
        state=_state(value),
    )
    await in_database_thread(objects.save, row)
    await call.answer(body)


def _read(body: bytes) -> _NewBatch:
    fields = decoded(_NEW_BATCH, body)
    for name in ("prompt_config", "models", "provider"):
        if getattr(fields, name) is not None:
            raise ValidationError(
                f"{name}: managed prompts and routing do not apply to batches", code="unsupported_parameter"
            )
    return fields


def _check_file(call: StoredCall, place: Place, file: StoredObject, fields: _NewBatch) -> None:
    if file.purpose != "batch":
        raise ValidationError(f"input_file_id: a file with the purpose {file.purpose!r} has no requests of a batch")
    if normal_endpoint(fields.endpoint) != file.endpoint:
        raise ValidationError(f"endpoint: {fields.endpoint[:100]!r} differs from the url {file.endpoint!r} of line 1")
    for model in file.model_names:
        if not call.state.key.permits(place.provider, place.client_name(model), place.name):
            raise ModelNotAllowedError(f"input_file_id: this API key may not call {model!r}")


async def list_batches(call: StoredCall) -> None:
    await call.read()
    project_id, after = call.state.snapshot.project_id, call.query.get("after", "")
    rows, has_more = await in_database_thread(
        objects.page, project_id, _BATCH, after=after, limit=call.limit(_PAGE, objects.MAX_PAGE)
    )
    await refresh(call, [row for row in rows if row.state not in _ENDED], _PATH, note)
    await call.answer(listed([row.value for row in rows], has_more=has_more))


async def refresh(call: StoredCall, rows: list[StoredObject], path: str, note: Any) -> None:
    """Asks the providers for the state of batches. If one does not answer, its batch stays as it was last seen."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def ask(row: StoredObject) -> None:
        async with room:
            try:
                _, value = await call.exchange_with(row).ask(Sent("GET", path_of(path, row.vendor_id)))
            except ApplicationError:
                return
            await note(row, value)

    await asyncio.gather(*map(ask, rows))


async def show(call: StoredCall) -> None:
    await call.read()
    await _pass(call, "GET")


async def cancel(call: StoredCall) -> None:
    await call.read()
    await _pass(call, "POST", "cancel")


async def _pass(call: StoredCall, method: str, *action: str) -> None:
    row = await in_database_thread(objects.find, call.state.snapshot.project_id, _BATCH, call.id)
    body, value = await call.exchange_with(row).ask(Sent(method, path_of(_PATH, row.vendor_id, *action)))
    await note(row, value)
    await call.answer(body)


async def note(row: StoredObject, value: Mapping[str, Any]) -> None:
    results = [found for name in _RESULTS if isinstance(found := value.get(name), str) and found]
    await in_database_thread(objects.save_seen, row, value, _state(value), results)


def _state(value: Mapping[str, Any]) -> str:
    return str(value.get("status") or "")[:30]
