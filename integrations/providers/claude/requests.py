"""Requests of the Messages API as other hosts than the vendor take them: the model stands in the address and the
version in the body, and a host refuses a request that names a beta feature which it does not know.

Coding agents announce every feature that Anthropic has, whichever model serves them, so names that the host does not
know are left out. A request whose body uses such a feature is refused by the host itself.
"""

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
    """These hosts do not fetch images or documents (https://platform.claude.com/docs/en/build-with-claude/vision)."""
    return _URL in body and _BY_ADDRESS.search(body) is not None


def version_for(headers: Iterable[tuple[str, str]], own: str) -> str:
    """`own`, the host's name of the first version, or a later version of the client, named alike at all hosts."""
    version = next((value for name, value in headers if name == VERSION_HEADER), "")
    return version if version > _FIRST else own


def at_host(body: bytes, version: str, without: Collection[str], extra: Mapping[str, object] | None = None) -> bytes:
    """Adds `anthropic_version` and `extra`, drops the fields `without`; other values keep their bytes."""
    fields: dict[str, object] = {"anthropic_version": version}
    fields.update((name, value) for name, value in _decode(body).items() if name not in without)
    if extra:
        fields.update(extra)
    return _encode(fields)


HEADER = "anthropic-beta"

# https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
VERTEX = frozenset(
    {
        "compact-2026-01-12",
        "computer-use-2024-10-22",
        "computer-use-2025-01-24",
        "computer-use-2025-11-24",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "interleaved-thinking-2025-05-14",
        "per-turn-control-2026-07-01",
        "thinking-binding-controls-2026-08-01",
        "thinking-display-updates-2026-08-18",
        "tool-search-tool-2025-10-19",
        "web-search-2025-03-05",
    }
)
# https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html
BEDROCK = frozenset(
    {
        "compact-2026-01-12",
        "computer-use-2024-10-22",
        "computer-use-2025-01-24",
        "computer-use-2025-11-24",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "fine-grained-tool-streaming-2025-05-14",
        "interleaved-thinking-2025-05-14",
        "output-128k-2025-02-19",
        "thinking-binding-controls-2026-08-01",
        "thinking-display-updates-2026-08-18",
        "token-efficient-tools-2025-02-19",
        "tool-examples-2025-10-29",
        "tool-search-tool-2025-10-19",
    }
)


def known_betas(headers: Iterable[tuple[str, str]], known: frozenset[str]) -> list[str]:
    """Returns the beta features in the client's headers that the host knows, each once."""
    values = [value for name, value in headers if name == HEADER]
    words = dict.fromkeys(word.strip() for value in values for word in value.split(","))
    return [word for word in words if word in known]
