"""Message batches of Anthropic (https://platform.claude.com/docs/en/api/creating-message-batches)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import msgspec
from django.conf import settings

from core.errors import ValidationError
from core.processes.database_threads import in_database_thread
from gateway.batches import objects
from gateway.batches.call import StoredCall, path_of, with_value
from gateway.batches.exchange import Sent
from gateway.batches.jobs import refresh
from gateway.batches.places import Place, place_of
from gateway.batches.records import LineRecords
from gateway.batches.requests import RequestChecks
from gateway.batches.results import Pricing
from gateway.batches.upload import mapped, reader_of, receive_into, temporary_file
from gateway.models import StoredObject
from gateway.pipeline.context import RequestState
from gateway.protocol.wire import explain
from gateway.tables.stored_object import ObjectKind

_KIND = ObjectKind.MESSAGE_BATCH
_PATH = "messages/batches"
_PAGE = 20
_ENDED = "ended"
_RESULTS_URL = "results_url"


class _NewBatch(msgspec.Struct):
    requests: list[msgspec.Raw]
    prompt_config: Any = None


_decode = msgspec.json.Decoder(_NewBatch).decode


async def create(call: StoredCall) -> None:
    place = await call.new_place()
    with temporary_file() as file:
        size = await receive_into(file, call.watch.receive, call.state.headers)
        call.watch.body_arrived()
        checks = await in_database_thread(_checked, file, size, call.state, place)
        body, value = await call.exchange(place).ask(Sent("POST", _PATH, file=reader_of(file), length=size))
    row = call.new_row(
        place,
        _KIND,
        value,
        endpoint=checks.endpoint,
        model_names=checks.models,
        lines=checks.count,
        state=_state(value),
    )
    await in_database_thread(objects.save, row)
    await _answer(call, body, row)


def _checked(file: BinaryIO, size: int, state: RequestState, place: Place) -> RequestChecks:
    checks = RequestChecks(state, place)
    if not size:
        raise ValidationError("The request body is not valid JSON", code="invalid_json")
    try:
        fields = _decode(mapped(file, size).raw)
    except msgspec.ValidationError as problem:
        raise explain(str(problem)) from None
    except (msgspec.DecodeError, RecursionError):
        raise ValidationError("The request body is not valid JSON", code="invalid_json") from None
    if fields.prompt_config is not None:
        raise ValidationError("prompt_config: managed prompts do not apply to batches", code="unsupported_parameter")
    checks.check_messages(fields.requests)
    return checks


async def list_batches(call: StoredCall) -> None:
    await call.read()
    query = call.query
    rows, has_more = await in_database_thread(
        objects.page,
        call.state.snapshot.project_id,
        _KIND,
        after=query.get("after_id", ""),
        before=query.get("before_id", ""),
        limit=call.limit(_PAGE, objects.MAX_PAGE),
    )
    await refresh(call, [row for row in rows if row.state != _ENDED], _PATH, _note)
    shown = [{**row.value, _RESULTS_URL: _results_url(call, row)} for row in rows]
    first, last = (shown[0].get("id"), shown[-1].get("id")) if shown else (None, None)
    await call.answer(msgspec.json.encode({"data": shown, "has_more": has_more, "first_id": first, "last_id": last}))


async def show(call: StoredCall) -> None:
    await call.read()
    await _pass(call, "GET")


async def cancel(call: StoredCall) -> None:
    await call.read()
    await _pass(call, "POST", "cancel")


async def _pass(call: StoredCall, method: str, *action: str) -> None:
    row = await _row(call)
    body, value = await call.exchange_with(row).ask(Sent(method, path_of(_PATH, row.vendor_id, *action)))
    await _note(row, value)
    await _answer(call, body, row)


async def delete(call: StoredCall) -> None:
    await call.read()
    row = await _row(call)
    body, _ = await call.exchange_with(row).ask(Sent("DELETE", path_of(_PATH, row.vendor_id)))
    await in_database_thread(objects.forget, row)
    await call.answer(body)


async def results(call: StoredCall) -> None:
    await call.read()
    row = await _row(call)
    response = await call.exchange_with(row).open(Sent("GET", path_of(_PATH, row.vendor_id, "results")))
    if row.priced_at is not None:
        await call.pass_on(response)
        return
    state = call.state
    records = LineRecords(state.snapshot, place_of(state.snapshot, row.integration_id), row, state.arrived_us)
    await call.pass_on(response, Pricing(call.runtime, state.snapshot, row, records, call.surface.vendor.read_result))


async def _row(call: StoredCall) -> StoredObject:
    return await in_database_thread(objects.find, call.state.snapshot.project_id, _KIND, call.id)


async def _note(row: StoredObject, value: Mapping[str, Any]) -> None:
    await in_database_thread(objects.save_seen, row, value, _state(value))


async def _answer(call: StoredCall, body: bytes, row: StoredObject) -> None:
    """The vendor's SDKs fetch results from the address in the batch, so that address must be the gateway's."""
    await call.answer(with_value(body, _RESULTS_URL, _results_url(call, row)))


def _results_url(call: StoredCall, row: StoredObject) -> str | None:
    if not row.value.get(_RESULTS_URL):
        return None
    root = settings.PUBLIC_URL or f"{call.scope.get('scheme', 'http')}://{call.header(b'host')}"
    return f"{root.rstrip('/')}/api/gateway/v1/{path_of(_PATH, row.vendor_id, 'results')}"


def _state(value: Mapping[str, Any]) -> str:
    return str(value.get("processing_status") or "")[:30]
