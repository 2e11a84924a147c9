"""Tests instructions in mid-conversation: at their place, or marked in the user's turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from integrations.providers.common.conversation import Block, Conversation, Text, ToolResult, Turn, read_conversation
from integrations.providers.common.instructions import as_user, behind_user, marked
from tests.tables.cases import tabled

MESSAGES = {
    "S": {"role": "system", "content": "S"},
    "X": {"role": "system", "content": "X"},
    "Y": {"role": "developer", "content": [{"type": "text", "text": "Y", "cache_control": {"type": "ephemeral"}}]},
    "B": {"role": "system", "content": " "},
    "U": {"role": "user", "content": "U"},
    "V": {"role": "user", "content": "V"},
    "A": {"role": "assistant", "content": "A"},
    "C": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    "R": {"role": "tool", "tool_call_id": "c", "content": "R"},
}


def read(story: str) -> Conversation:
    return read_conversation({"messages": [MESSAGES[letter] for letter in story]}, keep_places=True)


def in_its_place(conversation: Conversation) -> Conversation:
    """Returns the conversation as an adapter writes it that leaves blank texts out."""
    written = [(turn.role, [block for block in turn.blocks if not _is_blank(block)]) for turn in conversation.turns]
    placed = behind_user(written, _as_users)
    return replace(conversation, turns=tuple(Turn(role, tuple(blocks)) for role, blocks in placed))


def _is_blank(block: Block) -> bool:
    return isinstance(block, Text) and not block.text.strip()


def _as_users(block: Block) -> Block:
    assert isinstance(block, Text)
    return replace(block, text=marked(block.text))


def notation(conversation: Conversation) -> str:
    """Returns one letter for each block, in lower case where it is marked, after the first letter of its turn's
    role."""
    return " ".join(f"{turn.role[0]}:{''.join(_letter(block) for block in turn.blocks)}" for turn in conversation.turns)


def _letter(block: object) -> str:
    if isinstance(block, Text):
        head, _, rest = block.text.partition("\n")
        return rest[0].lower() if head == "<system-instruction>" else block.text
    return "R" if isinstance(block, ToolResult) else "C"


@tabled
def test_instructions__in_mid_conversation__after_the_previous_turns(
    story: str, in_place: str, of_the_user: str
) -> None:
    conversation = read(story)
    assert notation(in_its_place(conversation)) == in_place
    assert notation(as_user(conversation)) == of_the_user
    assert [text.text for text in conversation.system] == ["S"] * story.count("S")


def test_instructions__cache_marker__kept() -> None:
    for placed in (in_its_place(read("UY")), as_user(read("UY"))):
        last = placed.turns[-1].blocks[-1]
        assert isinstance(last, Text)
        assert last.cache_control == {"type": "ephemeral"}


@pytest.mark.parametrize("story", ["SUA", "UCR"])
def test_instructions__none_in_mid_conversation__the_same_conversation(story: str) -> None:
    conversation = read(story)
    assert as_user(conversation) is conversation


def test_conversation__places_not_kept__instructions_are_system() -> None:
    conversation = read_conversation({"messages": [MESSAGES[letter] for letter in "SUXA"]})
    assert [text.text for text in conversation.system] == ["S", "X"]
    assert notation(conversation) == "u:U a:A"
