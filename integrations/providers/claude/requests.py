"""Requests of the Messages API as other hosts than the vendor take them: the model stands in the address and the
version in the body."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
VERSION_HEADER = "anthropic-version"
# Versions are dates, which sort as texts.
_FIRST = "2023-06-01"
_URL = b'"url"'
_BY_ADDRESS = re.compile(rb'"type"\s*:\s*"url"')


def names_files_by_address(body: bytes) -> bool:
    """Returns whether the body has images or documents by address, which these hosts do not fetch
    (https://platform.claude.com/docs/en/build-with-claude/vision)."""
    return _URL in body and _BY_ADDRESS.search(body) is not None


def version_for(headers: Iterable[tuple[str, str]], own: str) -> str:
    """Returns the version for the body: `own`, the host's name of the first version, or the client's where that is a
    later one. These have one name at all hosts."""
    version = next((value for name, value in headers if name == VERSION_HEADER), "")
    return version if version > _FIRST else own


def at_host(body: bytes, version: str, without: Collection[str], extra: Mapping[str, object] | None = None) -> bytes:
    """Returns the body with `anthropic_version` and the fields `extra`, and without those of the names `without`. The
    values of all other fields keep their bytes."""
    fields: dict[str, object] = {"anthropic_version": version}
    fields.update((name, value) for name, value in _decode(body).items() if name not in without)
    if extra:
        fields.update(extra)
    return _encode(fields)
