from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from integrations.pricing import catalog_a, catalog_b
from integrations.pricing.entries import CatalogError, PriceEntry, Refusal

Key = tuple[str, str]

# The reader's number has to be raised with every change of the reading code, since an ETag of an older reading then no
# longer applies.
READER = 2
# The sources that are synced. For a model that both list, the price of the first one applies.
READERS: dict[str, Callable[[Any], Iterator[PriceEntry | Refusal]]] = {
    "catalog_a": catalog_a.read,
    "catalog_b": catalog_b.read,
}


@dataclass(frozen=True, slots=True)
class Reading:
    entries: Mapping[Key, PriceEntry]
    refused: Mapping[Key, Refusal]


def read_catalog(source: str, body: bytes) -> Reading:
    entries: dict[Key, PriceEntry] = {}
    refused: dict[Key, Refusal] = {}
    for found in READERS[source](_decoded(body)):
        key = (found.provider, found.model)
        if isinstance(found, PriceEntry):
            entries.setdefault(key, found)
        else:
            refused.setdefault(key, found)
    if not entries:
        raise CatalogError("it has no price of a known provider")
    return Reading(entries, {key: refusal for key, refusal in refused.items() if key not in entries})


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CatalogError(f"not valid JSON: {error}") from error
