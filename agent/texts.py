"""The titles of conversations. Pure."""

from __future__ import annotations

from core.wire.storable import storable

_TITLE_CHARACTERS = 80


def title_of(message: str) -> str:
    """Returns the first words of a message, cut between words where there are any."""
    text = " ".join(storable(message).split())
    if len(text) <= _TITLE_CHARACTERS:
        return text
    cut = text[:_TITLE_CHARACTERS]
    before, blank, _ = cut.rpartition(" ")
    return f"{(before if blank else cut).rstrip(' ,;:')}…"
