from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from config.backup.errors import BackupError

NAME = "manifest.json"
PRODUCT = "prompt-gateway"
FORMAT = 1
_PIECE = 1 << 20


class StoredFile(msgspec.Struct, frozen=True):
    """A file of the backup: its name below the backup, size in bytes, SHA-256 in hexadecimal, and a table's number of
    rows."""

    name: str
    bytes: int
    sha256: str
    rows: int = 0


class RequestLog(msgspec.Struct, frozen=True):
    """The request log: its database, the version of ClickHouse, the numbers in the ledger of migrations, and its
    archive, or the objects (name and bytes) that a server wrote to object storage itself."""

    database: str
    clickhouse: str
    migrations: list[int]
    archive: StoredFile | None = None
    objects: dict[str, int] = {}


class Manifest(msgspec.Struct, frozen=True):
    """`migrations` are those of the SQL database by app; `secrets` tells whether the backup has encrypted secrets."""

    name: str
    version: str
    began_at: datetime
    finished_at: datetime
    database: str
    migrations: dict[str, list[str]]
    secrets: bool
    files: list[StoredFile]
    request_log: RequestLog | None
    product: str = PRODUCT
    format: int = FORMAT

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


class _Head(msgspec.Struct):
    product: str
    format: int
    version: str


def to_json(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2)


def read_manifest(text: bytes, address: str) -> Manifest:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise BackupError(f"{address}: {NAME} is torn.") from None
    try:
        head = msgspec.json.decode(text, type=_Head)
    except msgspec.ValidationError:
        raise BackupError(f"{address}: {NAME} is not one of this product.") from None
    if head.product != PRODUCT:
        raise BackupError(f"{address}: {NAME} is of {head.product!r}, not of {PRODUCT}.")
    if head.format > FORMAT:
        raise BackupError(f"{address}: the backup has a later format than this version reads: use {head.version}.")
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.ValidationError as error:
        raise BackupError(f"{address}: {NAME}: {error}.") from None
    for name in _names(manifest):
        if not name.isprintable() or {"", ".", ".."} & set(name.split("/")):
            raise BackupError(f"{address}: {NAME} names the file {name!r}, which is none of a backup.")
    return manifest


def _names(manifest: Manifest) -> Iterator[str]:
    yield from (file.name for file in manifest.files)
    if manifest.request_log is not None:
        yield from manifest.request_log.objects
        if manifest.request_log.archive is not None:
            yield manifest.request_log.archive.name


def describe(file: Path, name: str, rows: int = 0) -> StoredFile:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
    return StoredFile(name, file.stat().st_size, digest.hexdigest(), rows)


def check_file(file: Path, expected: StoredFile, address: str) -> None:
    if not file.is_file():
        raise BackupError(f"{address}: {expected.name} is missing.")
    if file.stat().st_size != expected.bytes:
        raise BackupError(f"{address}: {expected.name} has {file.stat().st_size} bytes instead of {expected.bytes}.")
    if describe(file, expected.name).sha256 != expected.sha256:
        raise BackupError(f"{address}: {expected.name} is damaged: its SHA-256 is not that of the manifest.")
