"""What an answer gives out of what the provider keeps: later requests may name it by its id alone."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Kept(StrEnum):
    FILE = "file"
    RESPONSE = "response"
    ITEM = "item of a response"
    CONTAINER = "container"
    AUDIO = "audio of an answer"
    CONVERSATION = "conversation"
    STORE = "vector store"
    CACHE = "cached content"
    PROMPT = "stored prompt"
    ASSET = "object"


Given = tuple[Kept, str]
"""What is given out, and its id. It is no class of its own, which would cost more to make than the rest."""
NOTHING_GIVEN: Final[tuple[Given, ...]] = ()


def given(kind: Kept, of_provider: object) -> tuple[Given, ...]:
    return ((kind, of_provider),) if isinstance(of_provider, str) and of_provider else NOTHING_GIVEN


def given_in_object(kind: Kept, of_provider: object) -> tuple[Given, ...]:
    return given(kind, of_provider.get("id")) if isinstance(of_provider, dict) else NOTHING_GIVEN
