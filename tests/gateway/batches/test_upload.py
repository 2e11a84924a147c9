"""Bodies that are kept on disk: their bounds, and lines that lie across the windows in which they are looked at."""

from __future__ import annotations

import asyncio
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from core.errors import BodyTooLargeError, ServiceUnavailableError, ValidationError
from gateway.batches.upload import mapped, receive_into, temporary_file
from gateway.protocol.headers import RequestHeaders


def receive_all(pieces: list[bytes], headers: RequestHeaders | None = None) -> bytes:
    """Returns what arrives in these pieces."""
    left = list(pieces)

    async def receive() -> Any:
        body = left.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    file = BytesIO()
    size = asyncio.run(receive_into(file, receive, headers or RequestHeaders()))
    assert size == len(file.getvalue())
    return file.getvalue()


def test_body__in_pieces__is_written_whole(settings: Settings) -> None:
    settings.GATEWAY_FILE_BYTES = 5_000_000
    pieces = [b"a" * 700_000, b"b" * 700_000, b"", b"c" * 700_000, b"d"]

    assert receive_all(pieces) == b"".join(pieces)


def test_body__above_the_bound__is_refused_before_the_rest_arrives(settings: Settings) -> None:
    settings.GATEWAY_FILE_BYTES = 1024

    with pytest.raises(BodyTooLargeError):
        receive_all([b"a" * 1000, b"b" * 25, b"never asked for"])


def test_body__that_is_compressed__is_refused() -> None:
    with pytest.raises(ValidationError, match="content-encoding"):
        receive_all([b""], RequestHeaders(content_encoding="gzip"))


def test_lines__across_the_windows_of_a_search__are_whole(settings: Settings, tmp_path: Any) -> None:
    settings.GATEWAY_FILE_DIR, settings.GATEWAY_BODY_BYTES = tmp_path, 2_000_000
    lines = [b"a" * (1024 * 1024 - 1), b"", b"b" * 1_500_000, b"c" * 3_000_000, b"d"]
    with temporary_file() as file:
        file.write(b"\r\n".join(lines))
        file.flush()
        content = mapped(file, file.tell())

        found = list(content.lines(0, len(content.raw)))

    assert found[:2] == [(1, lines[0]), (3, lines[2])] and found[3] == (5, b"d")
    assert len(found[2][1]) == 2_000_001, "a line that is too long comes with one byte too many"


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\n", b"\x0b\x0c\n"])
def test_lines__between_millions_of_blank_ones__keep_their_numbers(
    settings: Settings, tmp_path: Any, blank: bytes
) -> None:
    settings.GATEWAY_FILE_DIR = tmp_path
    with temporary_file() as file:
        file.write(blank * 3_000_000 + b"a\n" + blank + b" b\n" + blank * 3_000_000)
        file.flush()

        found = list(mapped(file, file.tell()).lines(0, file.tell()))

    assert found == [(3_000_001, b"a"), (3_000_003, b"b")]


def test_file__on_a_full_disk__is_refused_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"a" * 100_000, "more_body": False}

    with Path("/dev/full").open("w+b", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full)

        with pytest.raises(ServiceUnavailableError) as refused, temporary_file() as file:
            asyncio.run(receive_into(file, receive, RequestHeaders()))

    assert refused.value.headers["retry-after"] == "30"
