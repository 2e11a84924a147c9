"""Files that outlive a host: in a folder, or below a prefix of object storage (`s3://bucket/prefix`) by boto3.

boto3 reads its own credentials, region and endpoint: AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL_S3 and so on
(https://boto3.amazonaws.com/v1/documentation/api/latest/guide/configuration.html).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

_NOT_THERE = {"404", "NoSuchKey", "NotFound"}


class StorageError(Exception):
    """The message is one sentence with the address."""


class Place(Protocol):
    """A folder of files by name. Its methods raise StorageError."""

    address: str

    def within(self, name: str) -> Place: ...

    def folders(self) -> list[str]: ...

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...

    def put(self, source: Path, name: str) -> None: ...

    def fetch(self, name: str, into: Path) -> Path:
        """Returns a local file with the content: the stored one itself, or a copy below `into`. It does not exist if
        the place lacks the file."""

    def sizes(self, name: str) -> dict[str, int]: ...

    def delete(self, name: str) -> None: ...

    def remove(self, name: str) -> None: ...


def place_of(address: str) -> Place:
    if "://" not in address:
        return Folder(Path(address).expanduser().absolute())
    parts = urlsplit(address)
    if parts.scheme != "s3" or not parts.hostname:
        raise StorageError(f"{address}: give a folder, or s3://bucket/prefix.")
    return Bucket(parts.netloc, parts.path.strip("/"))


class Folder(Place):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = str(path)

    def within(self, name: str) -> Folder:
        return Folder(self.path / name)

    def folders(self) -> list[str]:
        with _told(self.address):
            return sorted(entry.name for entry in self.path.iterdir() if entry.is_dir()) if self.path.exists() else []

    def read(self, name: str) -> bytes | None:
        with _told(self.address):
            file = self.path / name
            return file.read_bytes() if file.is_file() else None

    def write(self, name: str, content: bytes) -> None:
        with self._drafted(name) as draft:
            draft.write_bytes(content)

    def put(self, source: Path, name: str) -> None:
        with self._drafted(name) as draft:
            shutil.move(source, draft)  # A file of another disk is copied.

    @contextmanager
    def _drafted(self, name: str) -> Iterator[Path]:
        target = self.path / name
        with _told(self.address):
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}")
            yield draft
            with draft.open("rb") as written:
                os.fsync(written.fileno())
            draft.replace(target)

    def fetch(self, name: str, into: Path) -> Path:
        return self.path / name

    def sizes(self, name: str) -> dict[str, int]:
        root = self.path / name
        with _told(self.address):
            return {str(file.relative_to(root)): file.stat().st_size for file in root.rglob("*") if file.is_file()}

    def delete(self, name: str) -> None:
        with _told(self.address):
            (self.path / name).unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        with _told(self.address):
            shutil.rmtree(self.path / name)


class Bucket(Place):
    def __init__(self, bucket: str, prefix: str, session: Any = None) -> None:
        self.bucket, self.prefix = bucket, prefix
        self._session = session or _session()
        with _told_objects("s3"):
            self._client = self._session.client("s3")
        self.address = f"s3://{bucket}/{prefix}".rstrip("/")

    def within(self, name: str) -> Bucket:
        return Bucket(self.bucket, self.key(name), self._session)

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}".strip("/")

    def folders(self) -> list[str]:
        start = f"{self.prefix}/" if self.prefix else ""
        with _told_objects(self.address):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=start, Delimiter="/"
            )
            found = [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", [])]
        return sorted(prefix.removeprefix(start).strip("/") for prefix in found)

    def read(self, name: str) -> bytes | None:
        with _told_objects(f"{self.address}/{name}"):
            try:
                content: bytes = self._client.get_object(Bucket=self.bucket, Key=self.key(name))["Body"].read()
                return content
            except self._client.exceptions.NoSuchKey:
                return None

    def write(self, name: str, content: bytes) -> None:
        with _told_objects(f"{self.address}/{name}"):
            self._client.put_object(Bucket=self.bucket, Key=self.key(name), Body=content)

    def put(self, source: Path, name: str) -> None:
        with _told_objects(f"{self.address}/{name}"):
            self._client.upload_file(str(source), self.bucket, self.key(name))
        source.unlink()

    def fetch(self, name: str, into: Path) -> Path:
        from botocore.exceptions import ClientError

        target = into / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _told_objects(f"{self.address}/{name}"):
            try:
                self._client.download_file(self.bucket, self.key(name), str(target))
            except ClientError as error:
                if error.response["Error"]["Code"] not in _NOT_THERE:
                    raise
        return target

    def sizes(self, name: str) -> dict[str, int]:
        start = f"{self.key(name)}/" if self.key(name) else ""
        with _told_objects(self.address):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=start)
            return {
                entry["Key"].removeprefix(start): entry["Size"] for page in pages for entry in page.get("Contents", [])
            }

    def delete(self, name: str) -> None:
        with _told_objects(self.address):
            self._client.delete_object(Bucket=self.bucket, Key=self.key(name))

    def remove(self, name: str) -> None:
        for file in self.sizes(name):
            self.delete(f"{name}/{file}")

    def clickhouse_arguments(self, name: str) -> list[str]:
        """Returns a folder's URL for ClickHouse, and its keys if they are lasting.

        Keys of a session (AWS STS) have a third part that BACKUP cannot take, so the server then uses its own role.
        """
        held = self._session.get_credentials()
        keys = held.get_frozen_credentials() if held is not None else None
        lasting = [keys.access_key, keys.secret_key] if keys is not None and not keys.token else []
        return [f"{self._client.meta.endpoint_url}/{self.bucket}/{self.key(name)}", *lasting]


def _session() -> Any:
    # boto3 takes a third of a second to import, and only object storage needs it.
    import boto3

    return boto3.Session()


@contextmanager
def _told(address: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{error.filename or address}: {error.strerror or error}.") from error


@contextmanager
def _told_objects(address: str) -> Iterator[None]:
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        with _told(address):
            yield
    except ClientError as error:
        told = error.response["Error"]
        raise StorageError(f"{address}: {told.get('Code')}: {told.get('Message', '').rstrip('.')}.") from error
    except (BotoCoreError, Boto3Error) as error:
        raise StorageError(f"{address}: {' '.join(str(error).split()).rstrip('.')}.") from error
