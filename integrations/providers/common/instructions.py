"""Places instructions in mid-conversation, for vendors that take them there and for those that do not.

Moved to the top they would lose their order ("from now on …"), and each of them would change the beginning of the
prompt, so that none of it could be read from the cache. Both functions below leave the preceding prompt unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from integrations.providers.common.conversation import Block, Conversation, Role, Text, Turn

# The mark is a tag, as the vendors' prompting guides mark the parts of a prompt.
_MARKED = "<system-instruction>\n{}\n</system-instruction>"


def as_user(conversation: Conversation) -> Conversation:
    """Returns the conversation with every turn of role "system" as the user's at the same place, each text marked as an
    instruction. Blank ones are left out, and an instruction between two answers is a turn of its own."""
    if not _has_instructions(conversation):
        return conversation
    turns: list[tuple[Role, list[Block]]] = []
    for turn in conversation.turns:
        if turn.role == "system":
            _append(turns, "user", _marked(turn.blocks))
        else:
            _append(turns, turn.role, turn.blocks)
    return _with_turns(conversation, turns)


def behind_user(conversation: Conversation) -> Conversation:
    """Returns the conversation with every turn of role "system" behind the user's turn that it stands in, one for each,
    since such a turn has to follow a user's turn and end the conversation or precede an answer. Without a user's turn
    there, between two answers or behind the last, the instruction becomes a marked turn of the user."""
    if not _has_instructions(conversation):
        return conversation
    turns: list[tuple[Role, list[Block]]] = []
    waiting: list[Block] = []
    for turn in conversation.turns:
        if turn.role == "system":
            waiting += [part for part in turn.blocks if isinstance(part, Text) and part.text.strip()]
            continue
        if turn.role == "assistant":
            _place(turns, waiting)
            waiting = []
        _append(turns, turn.role, turn.blocks)
    _place(turns, waiting)
    return _with_turns(conversation, turns)


def _has_instructions(conversation: Conversation) -> bool:
    return any(turn.role == "system" for turn in conversation.turns)


def _place(turns: list[tuple[Role, list[Block]]], waiting: list[Block]) -> None:
    if turns and turns[-1][0] == "user":
        _append(turns, "system", waiting)
    else:
        _append(turns, "user", _marked(waiting))


def _append(turns: list[tuple[Role, list[Block]]], role: Role, blocks: Sequence[Block]) -> None:
    if turns and turns[-1][0] == role:
        turns[-1][1].extend(blocks)
    elif blocks:
        turns.append((role, list(blocks)))


def marked(text: str) -> str:
    """Returns an instruction's text with the mark, for places where only a user may speak."""
    return _MARKED.format(text)


def _marked(blocks: Sequence[Block]) -> list[Block]:
    return [replace(part, text=marked(part.text)) for part in blocks if isinstance(part, Text) and part.text.strip()]


def _with_turns(conversation: Conversation, turns: list[tuple[Role, list[Block]]]) -> Conversation:
    return replace(conversation, turns=tuple(Turn(role, tuple(blocks)) for role, blocks in turns))
