"""The figures that the model of scaling starts from: what was measured (`measured.toml`), and assumed costs
(`prices.toml`)."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Annotated, get_type_hints

import msgspec
from msgspec import Meta

FOLDER = Path(__file__).parent
MEASURED, PRICES = FOLDER / "measured.toml", FOLDER / "prices.toml"


class Numbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int | float) and not 0 <= value < math.inf:
                raise ValueError(f"{name} has to be a number of at least 0, not {value}")


class Web(Numbers, frozen=True, kw_only=True):
    source: str
    request_us: Annotated[float, Meta(description="a request of 1 KB and its answer of 1.5 KB")]
    limits_us: Annotated[float, Meta(description="more with all limits")]
    prompt_us: Annotated[float, Meta(description="more with a managed prompt under a rollout")]
    kilobyte_us: Annotated[float, Meta(description="more for each KB of a request beyond the first")]
    chunk_us: Annotated[float, Meta(description="for each chunk of a stream")]
    proxy_request_us: Annotated[float, Meta(description="a bare reverse proxy, for a request")]
    proxy_chunk_us: Annotated[float, Meta(description="a bare reverse proxy, for a chunk")]


class Records(Numbers, frozen=True, kw_only=True):
    source: str
    shipper_us: Annotated[float, Meta(description="shipper, for a record with its texts")]
    row_us: Annotated[float, Meta(description="ClickHouse, for a record without texts")]
    text_us: Annotated[float, Meta(description="ClickHouse, for each KB of text, indexes included")]
    insert_us: Annotated[float, Meta(description="ClickHouse, for each batch, however small")]
    row_bytes: Annotated[float, Meta(description="on disk without texts, rollups included")]
    text_bytes: Annotated[float, Meta(description="on disk for each KB of text, indexes included")]
    spool_bytes: Annotated[float, Meta(description="in the spool without texts")]


class Stores(Numbers, frozen=True, kw_only=True):
    source: str
    batches: Annotated[float, Meta(description="batches that a host inserts a second")]
    postgresql_connections: Annotated[float, Meta(description="of a host")]
    postgresql_transactions: Annotated[float, Meta(description="of a host a second")]
    postgresql_us: Annotated[float, Meta(description="PostgreSQL's CPU microseconds for a host a second")]
    redis_connections: Annotated[float, Meta(description="of a host")]
    redis_host_commands: Annotated[float, Meta(description="of a host a second, without limits")]
    redis_host_us: Annotated[float, Meta(description="Redis' CPU microseconds for a host a second, without limits")]
    redis_limits_commands: Annotated[float, Meta(description="of a request with all limits")]
    redis_limits_us: Annotated[float, Meta(description="Redis' CPU microseconds for a request with all limits")]
    redis_limits_bytes: Annotated[float, Meta(description="to and from Redis for a request with all limits")]
    redis_delivery_us: Annotated[float, Meta(description="Redis' CPU microseconds for each receiver of a message")]
    redis_scope_bytes: Annotated[float, Meta(description="memory of a budget: of a project, key, user or session")]


class Measured(Numbers, frozen=True, kw_only=True):
    web: Web
    records: Records
    stores: Stores


class Prices(Numbers, frozen=True, kw_only=True):
    """Dollars. They are assumptions, not a vendor's prices."""

    core_hour: Annotated[float, Meta(description="dollars for a core and hour")]
    memory_gb_hour: Annotated[float, Meta(description="dollars for a GB of memory and hour")]
    disk_gb_month: Annotated[float, Meta(description="dollars for a GB of disk and month")]
    egress_gb: Annotated[float, Meta(description="dollars for a GB to clients and providers")]


def measured(file: Path = MEASURED) -> Measured:
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Measured)


def prices(file: Path = PRICES) -> Prices:
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Prices)


def write(part: Web | Records | Stores, file: Path = MEASURED) -> None:
    found = msgspec.structs.replace(measured(file), **{type(part).__name__.lower(): part})
    sections = ((name, getattr(found, name)) for name in found.__struct_fields__)
    head = file.read_text(encoding="utf-8").partition("[")[0]
    file.write_text(head + "\n".join(_section(name, section) for name, section in sections), encoding="utf-8")


def _section(name: str, section: msgspec.Struct) -> str:
    values = ((field, getattr(section, field)) for field in section.__struct_fields__)
    lines = (f'{field} = "{value}"' if isinstance(value, str) else f"{field} = {value:.4g}" for field, value in values)
    return f"[{name}]\n" + "\n".join(lines) + "\n"


def described(struct: type[msgspec.Struct]) -> dict[str, str]:
    hints = get_type_hints(struct, include_extras=True)
    return {name: hints[name].__metadata__[0].description for name in struct.__struct_fields__ if name != "source"}
