from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from analytics.conversation.bodies import NOT_JSON, decode_body
from analytics.datasets.errors import InvalidItemError, NothingToAddError, TextsNotStoredError
from analytics.datasets.items import MAX_ITEM_BYTES, MAX_TAGS, NO_PARAMETERS, NewItem, read_item
from analytics.identifiers import id_hash
from analytics.models.datasets import DatasetItem
from analytics.models.reviews import FIRST_OPINION
from analytics.queries.bodies import BoundedBodies, bounded_bodies
from analytics.queries.request_cursor import Keyed, RequestCursor
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampleOrder, sample_requests
from analytics.queries.requests import RequestRow, count_requests, get_request_time, get_requests
from analytics.request_log.record import Operation
from analytics.reviews.due_labels import hidden_items
from analytics.reviews.selectors import get_queue
from core.chunks import chunks
from core.errors import ValidationError
from core.wire.shown import seen_as
from core.wire.storable import storable

_ROWS_AT_ONCE = 500


class LeftOut(StrEnum):
    ALREADY_THERE = "already_there"
    NO_TEXT = "no_text"
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"


@dataclass(slots=True)
class Found:
    items: list[NewItem] = field(default_factory=list)
    left_out: Counter[LeftOut] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How items are made: the tags of each, and whether the given answer is expected.

    `answers` are expected instead, by the id of their request or of the copied item.
    """

    tags: Sequence[str] = ()
    expect_answer: bool = False
    answers: Mapping[UUID, str] = field(default_factory=dict)

    def expected(self, one: UUID, otherwise: Any) -> Any:
        return self.answers.get(one, otherwise)


def of_filter(
    project_id: UUID, filters: RequestFilter, order: SampleOrder, limit: int, *, known: Iterable[UUID], options: Options
) -> Found:
    """Items of at most `limit` matching chat completions, without requests that are `known`.

    Raises NothingToAddError, TextsNotStoredError and the errors of the store.
    """
    sample = sample_requests(project_id, filters, order, limit=limit)
    if not sample:
        if count_requests(project_id, replace(filters, operation=str(Operation.CHAT))):
            raise TextsNotStoredError
        raise NothingToAddError.of_field("filter", "No chat completion matches.")
    return _found(project_id, sample, known, options)


def of_requests(project_id: UUID, ids: Sequence[UUID], *, known: Iterable[UUID], options: Options) -> Found:
    """Raises as `of_filter` does."""
    times = {request_id: get_request_time(project_id, request_id) for request_id in dict.fromkeys(ids)}
    keys = [RequestCursor(ts, request_id) for request_id, ts in times.items() if ts is not None]
    return of_keys(project_id, keys, known=known, options=options)


def of_keys(project_id: UUID, keys: Sequence[RequestCursor], *, known: Iterable[UUID], options: Options) -> Found:
    """Raises as `of_filter` does."""
    if not keys:
        raise NothingToAddError.of_field("request_ids", "No chat completion matches.")
    return _found(project_id, keys, known, options)


def of_items(project_id: UUID, item_ids: Sequence[UUID], *, options: Options) -> Found:
    """Copies of items of the project's sets, each in its last form, with the tags of `options` added.

    Leaves out items that are gone; raises ValidationError if all are.
    """
    rows = DatasetItem.objects.filter(dataset__project_id=project_id, item_id__in=item_ids).order_by("added_in")
    last = {row.item_id: row for row in rows}
    there = [last[item_id] for item_id in item_ids if item_id in last]
    if not there:
        raise ValidationError("The items are gone: their requests were deleted, or their retention is over.")
    gone = Counter({LeftOut.NO_TEXT: len(item_ids) - len(there)})
    return Found([_copied(row, options) for row in there], gone)


def of_review(
    project_id: UUID, queue_id: UUID, states: Iterable[str], *, known: Iterable[UUID], options: Options
) -> Found:
    """Items of a review queue's requests in one of the states, without those that are hidden until they are labelled.
    Raises as `of_filter` does, and QueueNotFoundError."""
    queue = get_queue(project_id, queue_id)
    rows = list(queue.items.filter(state__in=list(states), opinion=FIRST_OPINION).order_by("position"))
    hidden = hidden_items(queue, rows)
    keys = [row for row in rows if row.pk not in hidden]
    if not keys:
        raise NothingToAddError.of_field("states", "No chat completion matches.")
    return _found(project_id, keys, known, options)


def _copied(row: DatasetItem, options: Options) -> NewItem:
    tags = list(dict.fromkeys([*options.tags, *row.tags]))[:MAX_TAGS]
    return seen_as(NewItem, row, expected=options.expected(row.item_id, row.expected), tags=tags)


def _found(project_id: UUID, keys: Sequence[Keyed], known: Iterable[UUID], options: Options) -> Found:
    found, there = Found(), set(known)
    fresh = [key for key in keys if key.request_id not in there]
    found.left_out[LeftOut.ALREADY_THERE] += len(keys) - len(fresh)
    for some in chunks(fresh, _ROWS_AT_ONCE):
        _add_items(found, project_id, some, options)
    if fresh and found.left_out[LeftOut.NO_TEXT] == len(fresh):
        raise TextsNotStoredError
    return found


def _add_items(found: Found, project_id: UUID, keys: Sequence[Keyed], options: Options) -> None:
    rows = {row.request_id: row for row in get_requests(project_id, keys)}
    bodies = {one.request_id: one for one in bounded_bodies(project_id, keys, max_bytes=2 * MAX_ITEM_BYTES)}
    for key in keys:
        row, body = rows.get(key.request_id), bodies.get(key.request_id)
        made = LeftOut.NO_TEXT if row is None or body is None else _made(row, body, options)
        if isinstance(made, LeftOut):
            found.left_out[made] += 1
        else:
            found.items.append(made)


def _made(row: RequestRow, bodies: BoundedBodies, options: Options) -> NewItem | LeftOut:
    if bodies.is_too_large:
        return LeftOut.TOO_LARGE
    if not bodies.request:
        return LeftOut.NO_TEXT
    body = decode_body(bodies.request)
    if body is NOT_JSON or not isinstance(body, dict) or row.operation not in ("", str(Operation.CHAT)):
        return LeftOut.UNREADABLE
    try:
        item = read_item(_described(row, storable(body), bodies, options))
    except InvalidItemError as error:
        return LeftOut.TOO_LARGE if "" in error.problems else LeftOut.UNREADABLE
    return replace(item, session_hash=id_hash(row.session_id) if row.session_id else "", retained_from=row.ts)


def _described(row: RequestRow, body: Mapping[str, Any], bodies: BoundedBodies, options: Options) -> dict[str, Any]:
    config_id = row.prompt_config_id
    return {
        "messages": body.get("messages"),
        "variables": body.get("prompt_variables"),
        "parameters": {name: value for name, value in body.items() if name not in NO_PARAMETERS},
        "expected": options.expected(row.request_id, _answer(bodies.response) if options.expect_answer else None),
        "tags": list(options.tags),
        "source_request_id": str(row.request_id),
        "prompt_config_id": str(config_id) if config_id.int else None,
        "prompt_version": (row.prompt_version or None) if config_id.int else None,
    }


def _answer(response: str) -> str | None:
    body = decode_body(response) if response else None
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    return storable(content) if isinstance(content, str) and content else None
