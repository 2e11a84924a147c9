"""Tests instructions in mid-conversation: at their place, or marked in the user's turn."""

from __future__ import annotations

import pytest

from integrations.providers.common.conversation import Conversation, Text, ToolResult, read_conversation
from integrations.providers.common.instructions import as_user, behind_user

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


def notation(conversation: Conversation) -> str:
    """Returns one letter for each block, in lower case where it is marked, after the first letter of its turn's
    role."""
    return " ".join(f"{turn.role[0]}:{''.join(_letter(block) for block in turn.blocks)}" for turn in conversation.turns)


def _letter(block: object) -> str:
    if isinstance(block, Text):
        head, _, rest = block.text.partition("\n")
        return rest[0].lower() if head == "<system-instruction>" else block.text
    return "R" if isinstance(block, ToolResult) else "C"


@pytest.mark.parametrize(
    ("story", "in_place", "of_the_user"),
    [
        ("SU", "u:U", "u:U"),
        ("SUAVX", "u:U a:A u:V s:X", "u:U a:A u:Vx"),
        ("SUAXV", "u:U a:A u:V s:X", "u:U a:A u:xV"),
        ("SUXV", "u:UV s:X", "u:UxV"),
        ("UXAV", "u:U s:X a:A u:V", "u:Ux a:A u:V"),
        ("UXYA", "u:U s:XY a:A", "u:Uxy a:A"),
        ("UXVYA", "u:UV s:XY a:A", "u:UxVy a:A"),
        ("UCXRA", "u:U a:C u:R s:X a:A", "u:U a:C u:xR a:A"),
        ("UAXA", "u:U a:A u:x a:A", "u:U a:A u:x a:A"),
        ("UAX", "u:U a:A u:x", "u:U a:A u:x"),
        ("UBA", "u:U a:A", "u:U a:A"),
        ("UABA", "u:U a:AA", "u:U a:AA"),
    ],
)
def test_instructions__in_mid_conversation__after_the_previous_turns(
    story: str, in_place: str, of_the_user: str
) -> None:
    conversation = read(story)
    assert notation(behind_user(conversation)) == in_place
    assert notation(as_user(conversation)) == of_the_user
    assert [text.text for text in conversation.system] == ["S"] * story.count("S")


def test_instructions__cache_marker__kept() -> None:
    for placed in (behind_user(read("UY")), as_user(read("UY"))):
        last = placed.turns[-1].blocks[-1]
        assert isinstance(last, Text)
        assert last.cache_control == {"type": "ephemeral"}


@pytest.mark.parametrize("story", ["SUA", "UCR"])
def test_instructions__none_in_mid_conversation__the_same_conversation(story: str) -> None:
    conversation = read(story)
    assert behind_user(conversation) is conversation
    assert as_user(conversation) is conversation


def test_conversation__places_not_kept__instructions_are_system() -> None:
    conversation = read_conversation({"messages": [MESSAGES[letter] for letter in "SUXA"]})
    assert [text.text for text in conversation.system] == ["S", "X"]
    assert notation(conversation) == "u:U a:A"
