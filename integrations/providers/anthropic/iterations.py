"""What an answer is billed for beyond its usage: every inference in `usage.iterations` (compactions, advisors,
fallbacks to another model, turns of the vendor's tools)."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import msgspec

from integrations.providers.usage import Usage

# The top-level counts stand for these. For all others they leave the tokens out.
_OF_THE_ANSWER = frozenset({"message", "fallback_message"})
_KNOWN = _OF_THE_ANSWER | {"compaction", "advisor_message"}
# An attempt that declined without output costs nothing, but in these categories
# (https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback).
_BILLED_REFUSALS = frozenset({"bio", "frontier_llm", "reasoning_extraction"})


class CacheCreation(msgspec.Struct, gc=False):
    ephemeral_1h_input_tokens: int | None = None


class Iteration(msgspec.Struct, gc=False):
    """One inference. `model` is None for the answer's model."""

    type: str = ""
    model: str | None = None
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    output_tokens: int | None = None


class Turn(msgspec.Struct):
    """The models that ran for an answer: the one asked, and each refusal's reason in order (None without a
    category).
    """

    asked: str = ""
    declined: list[str | None] = []

    def note(self, trigger: Any) -> None:
        category = trigger.get("category") if isinstance(trigger, dict) else None
        self.declined.append(category if isinstance(category, str) else None)


_decode = msgspec.json.Decoder(list[Iteration], strict=False).decode


def parts_of(sent: msgspec.Raw, usage: Usage, turn: Turn) -> tuple[Usage, ...]:
    """The billed inferences of an answer; empty if `usage` counts all of them."""
    try:
        entries = _decode(sent)
    except msgspec.DecodeError:
        return ()
    if len(entries) < 2 and all(entry.type == "message" for entry in entries):
        return ()
    own = [entry for entry in entries if entry.type in _OF_THE_ANSWER]
    beside = [entry for entry in entries if entry.type not in _OF_THE_ANSWER]
    parts = [_part(entry, usage) for entry in _billed(own, turn)] if own else [usage]
    if parts and usage.searches:
        parts[0] = msgspec.structs.replace(parts[0], searches=usage.searches)
    return (*parts, *(_part(entry, usage) for entry in beside))


def _billed(entries: list[Iteration], turn: Turn) -> list[Iteration]:
    """The entries without the attempts that declined free of charge. The models ran one after the other."""
    kept: list[Iteration] = []
    groups = [list(group) for _, group in groupby(entries, key=lambda entry: (entry.model, entry.type != "message"))]
    served = groups[-1][-1].model if entries[-1].type == "fallback_message" else None
    hops = [group for group in groups if served is None or group[0].model != served]
    for group in groups:
        place = hops.index(group) if group in hops else len(turn.declined)
        is_declined = place < len(turn.declined)
        is_free = is_declined and turn.declined[place] not in _BILLED_REFUSALS
        for entry in group:
            if is_declined and entry.model is None:
                entry.model = turn.asked
            if entry.output_tokens or not is_free:
                kept.append(entry)
    return kept


def _part(entry: Iteration, usage: Usage) -> Usage:
    read, written = max(0, entry.cache_read_input_tokens or 0), max(0, entry.cache_creation_input_tokens or 0)
    kept_1h = 0 if entry.cache_creation is None else entry.cache_creation.ephemeral_1h_input_tokens or 0
    return Usage(
        prompt_tokens=max(0, entry.input_tokens or 0) + read + written,
        completion_tokens=max(0, entry.output_tokens or 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=min(max(0, kept_1h), written),
        service_tier=usage.service_tier,
        model=entry.model or "",
        unknown="" if entry.type in _KNOWN else entry.type,
    )
