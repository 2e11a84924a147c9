"""Compactions: an item whose `encrypted_content` stands for the conversation before it.

Codex and others end a request with an item `compaction_trigger` and expect one item `compaction` in the answer, which
begins the next conversation. OpenAI makes it itself. For any other vendor the gateway asks the model for a summary and
seals it in the item; it opens the seal when the item comes back.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json
from integrations.providers.common.carried import summary_text

TRIGGER = "compaction_trigger"
ITEM = ("compaction", "compaction_summary")
SEAL = "compaction."
"""How the `encrypted_content` of the gateway's compactions begins."""

_REQUEST = """\
Stop here and write a summary that will replace this conversation: whoever goes on has nothing but it. Say what the \
user wants and has decided, in the user's own words where they matter; what has been done and found so far, with the \
names of files, commands, results and identifiers; what is open, and the next step. Write the summary alone, without \
a call of a tool."""
_MAX_CHARACTERS = 100_000

REQUEST: Json = {"role": "user", "content": _REQUEST}
"""The message that asks for the summary; do not mutate."""


def is_asked(request: SurfaceRequest) -> bool:
    items = (request.echo or {}).get("input")
    return isinstance(items, list) and any(isinstance(item, dict) and item.get("type") == TRIGGER for item in items)


def compaction_item(identifier: str, summary: str) -> Json:
    sealed = SEAL + urlsafe_b64encode(summary.encode("utf-8", "surrogatepass")).decode()
    return {"id": identifier, "type": ITEM[0], "encrypted_content": sealed}


def summary_of(item: Mapping[str, Any]) -> str | None:
    content = item.get("encrypted_content")
    if not isinstance(content, str) or not content.startswith(SEAL):
        return None
    try:
        return urlsafe_b64decode(content[len(SEAL) :]).decode("utf-8", "surrogatepass")
    except ValueError:
        return None


def opened(summary: str) -> Json:
    return {"role": "user", "content": summary_text(summary)}


def summary_in(message: Mapping[str, Any], request: SurfaceRequest) -> str:
    """The model's summary. If it wrote none, the conversation's texts take its place, so that nothing is lost."""
    for name in ("content", "refusal", "reasoning_content"):
        if isinstance(text := message.get(name), str) and text.strip():
            return text
    return "\n\n".join(_texts(request.echo["input"]))[-_MAX_CHARACTERS:]


def summaries_of(specific: Any) -> list[str]:
    content = specific.get("content") if isinstance(specific, Mapping) else None
    blocks = content if isinstance(content, list) else []
    found = [block.get("content") for block in blocks if isinstance(block, Mapping) and block.get("type") == ITEM[0]]
    return [summary for summary in found if isinstance(summary, str) and summary]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name in ("text", "content", "arguments", "output"):
            yield from _texts(value.get(name))
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one)
