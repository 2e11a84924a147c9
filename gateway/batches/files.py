"""Files of OpenAI's dialect (https://platform.openai.com/docs/api-reference/files)."""

from __future__ import annotations

from typing import Any, BinaryIO

import msgspec

from core.errors import ApplicationError
from core.processes.database_threads import in_database_thread
from gateway.batches import objects
from gateway.batches.call import StoredCall, path_of
from gateway.batches.exchange import Sent
from gateway.batches.places import Place, place_of
from gateway.batches.records import LineRecords
from gateway.batches.requests import RequestChecks
from gateway.batches.results import Pricing
from gateway.batches.upload import Form, blank_mark, mapped, not_a_form, reader_of, receive_into, temporary_file
from gateway.models import StoredObject
from gateway.pipeline.context import RequestState
from gateway.tables.stored_object import ObjectKind

_FILE = ObjectKind.FILE
_PATH = "files"
_MAX_PAGE = 1000
_BATCH = "batch"


async def upload(call: StoredCall) -> None:
    """POST /files. A file for a batch is checked line by line before it is sent."""
    place = await call.new_place()
    with temporary_file() as file:
        size = await receive_into(file, call.watch.receive, call.state.headers)
        call.watch.body_arrived()
        known = await in_database_thread(_checked, file, size, call.state, place)
        content_type = call.header(b"content-type")
        sent = Sent("POST", _PATH, content_type=content_type, file=reader_of(file), length=size)
        body, value = await call.exchange(place).ask(sent)
    row = call.new_row(place, _FILE, value, **known)
    await in_database_thread(objects.save, row)
    await call.answer(body)


def _checked(file: BinaryIO, size: int, state: RequestState, place: Place) -> dict[str, Any]:
    if not size:
        raise not_a_form("it is empty")
    content = mapped(file, size)
    form = Form(content)
    purpose, part = form.text("purpose"), form.file
    if purpose != _BATCH:
        return {"purpose": purpose[:50]}
    blank_mark(file, content, part.start)
    checks = RequestChecks(state, place)
    checks.check_lines(content.lines(part.start, part.end))
    return {
        "purpose": purpose,
        "endpoint": checks.endpoint,
        "model_names": checks.models,
        "lines": checks.count,
    }


async def list_files(call: StoredCall) -> None:
    await call.read()
    query = call.query
    rows, has_more = await in_database_thread(
        objects.page,
        call.state.snapshot.project_id,
        _FILE,
        after=query.get("after", ""),
        limit=call.limit(_MAX_PAGE, _MAX_PAGE),
        purpose=query.get("purpose", ""),
    )
    shown = [value for row in rows if (value := row.value or await _seen(call, row))]
    await call.answer(listed(shown, has_more=has_more))


async def _seen(call: StoredCall, row: StoredObject) -> dict[str, Any]:
    try:
        _, value = await call.exchange_with(row).ask(Sent("GET", path_of(_PATH, row.vendor_id)))
    except ApplicationError:
        return {}
    await in_database_thread(objects.save_seen, row, value, "")
    return dict(value)


def listed(shown: list[dict[str, Any]], *, has_more: bool) -> bytes:
    first, last = (shown[0].get("id"), shown[-1].get("id")) if shown else (None, None)
    page = {"object": "list", "data": shown, "first_id": first, "last_id": last, "has_more": has_more}
    return msgspec.json.encode(page)


async def show(call: StoredCall) -> None:
    await call.read()
    row = await _row(call)
    body, value = await call.exchange_with(row).ask(Sent("GET", path_of(_PATH, row.vendor_id)))
    await in_database_thread(objects.save_seen, row, value, "")
    await call.answer(body)


async def delete(call: StoredCall) -> None:
    await call.read()
    row = await _row(call)
    body, _ = await call.exchange_with(row).ask(Sent("DELETE", path_of(_PATH, row.vendor_id)))
    await in_database_thread(objects.forget, row)
    await call.answer(body)


async def content(call: StoredCall) -> None:
    """GET /files/{id}/content. A batch's results are priced once they have passed for the first time."""
    await call.read()
    row = await _row(call)
    response = await call.exchange_with(row).open(Sent("GET", path_of(_PATH, row.vendor_id, "content")))
    if not row.batch_id or row.priced_at is not None:
        await call.pass_on(response)
        return
    state = call.state
    place = place_of(state.snapshot, row.integration_id)
    records = LineRecords(state.snapshot, place, row, state.arrived_us)
    await call.pass_on(response, Pricing(call.runtime, state.snapshot, row, records, call.surface.vendor.read_result))


async def _row(call: StoredCall) -> StoredObject:
    return await in_database_thread(objects.find, call.state.snapshot.project_id, _FILE, call.id)
