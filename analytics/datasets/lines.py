from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import IO, Any

from django.db.models import QuerySet

from analytics.datasets.errors import InvalidItemError
from analytics.datasets.items import FIELDS, MAX_ITEM_BYTES, NewItem, read_item
from analytics.datasets.selectors import list_items
from analytics.models.datasets import Dataset, DatasetItem

# A line has the item's texts, and beside them its tags, ids and the escapes of its JSON.
MAX_LINE_BYTES = 6 * MAX_ITEM_BYTES
_ITEMS_AT_ONCE = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(
    file: IO[bytes], *, maximum: int, progress: Callable[[int], object] = lambda count: None
) -> Iterator[NewItem]:
    """Yields the items of a file. Skips empty lines; `progress` gets the number of lines read so far.

    Raises InvalidItemError, which names the line by its number and the field, and also for more than `maximum` items.
    """
    items = 0
    for number, line in enumerate(_lines(file), 1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line.strip():
            continue
        items += 1
        if items > maximum:
            raise InvalidItemError({f"line {number}": f"A file has at most {maximum:,} items."})
        yield _item(line, number)
        progress(number)


def line_of(item: DatasetItem) -> bytes:
    shown = {name: item.item_id if name == "id" else getattr(item, name) for name in FIELDS}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"), default=str).encode() + b"\n"


def dataset_lines(dataset: Dataset, version: int | None) -> Iterator[bytes]:
    """Returns pieces of an export, each of whole lines. Raises ValidationError if the version does not exist."""
    return _pieces(list_items(dataset, version=version))


def _pieces(items: QuerySet[DatasetItem]) -> Iterator[bytes]:
    # Pages by position instead of a cursor: the thread that reads a piece need not be the one that read the last.
    last, found = 0, True
    while found:
        rows = list(items.filter(position__gt=last)[:_ITEMS_AT_ONCE])
        found, last = bool(rows), rows[-1].position if rows else last
        if rows:
            yield b"".join(line_of(row) for row in rows)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise InvalidItemError({f"line {number}": f"The line is longer than {MAX_LINE_BYTES:,} bytes."})
        yield line


def _item(line: bytes, number: int) -> NewItem:
    try:
        return read_item(_decoded(line))
    except InvalidItemError as error:
        raise error.at(f"line {number}") from None


def _decoded(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise InvalidItemError({"": "Is not text in UTF-8."}) from None
    except json.JSONDecodeError as error:
        raise InvalidItemError({"": f"Is not JSON: {error.msg} at character {error.pos + 1}."}) from None
    except RecursionError:
        raise InvalidItemError({"": "Is nested too deeply."}) from None
    except ValueError:
        raise InvalidItemError({"": "Has a number that is too long or not finite."}) from None


def _no_constant(name: str) -> None:
    raise ValueError(name)
