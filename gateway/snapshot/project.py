"""Everything a request needs to know about its project, loaded once, immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from core.keys import KeyRecord
from integrations.pricing.cost import Price
from integrations.providers.base import Credentials

PriceTable = Mapping[tuple[str, str], Price]


@dataclass(frozen=True, slots=True)
class ProjectSnapshot:
    """`credentials` by provider name, enabled integrations only; `keys` by hash, revoked ones left out."""

    project_id: UUID
    id_text: str
    keys: Mapping[str, KeyRecord]
    credentials: Mapping[str, Credentials]
    prices: PriceTable
    serial: int
