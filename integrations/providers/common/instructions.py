"""Places mid-conversation instructions, for vendors that take them there and for those that do not.

At the top they would lose their order ("from now on …"), and each would change the beginning of the prompt, so that the
cache misses. Both functions below leave the preceding prompt unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from integrations.providers.common.conversation import Block, Conversation, Item, Role, Text, Turn

# The mark is a tag, as the vendors' prompting guides mark the parts of a prompt.
_MARKED = "<system-instruction>\n{}\n</system-instruction>"


def as_user(conversation: Conversation) -> Conversation:
    """Turns "system" turns into the user's at the same place, each text marked as an instruction. Blank ones are left
    out; an instruction between two answers becomes a turn of its own."""
    if not any(turn.role == "system" for turn in conversation.turns):
        return conversation
    turns: list[tuple[Role, list[Block]]] = []
    for turn in conversation.turns:
        if turn.role == "system":
            _append(turns, "user", _marked(turn.blocks))
        else:
            _append(turns, turn.role, turn.blocks)
    return replace(conversation, turns=tuple(Turn(role, tuple(blocks)) for role, blocks in turns))


def behind_user(
    turns: Iterable[tuple[Role, Sequence[Item]]], as_users: Callable[[Item], Item]
) -> list[tuple[Role, list[Item]]]:
    """Puts each "system" turn after the user's turn that it stands in: it must follow a user's turn, and end the
    conversation or precede an answer.

    Without a user's turn there (between two answers, after the last) it becomes the user's, with its blocks marked by
    `as_users`. Turns without blocks are left out.
    """
    placed: list[tuple[Role, list[Item]]] = []
    waiting: list[Item] = []

    def place() -> None:
        if placed and placed[-1][0] == "user":
            _append(placed, "system", waiting)
        else:
            _append(placed, "user", [as_users(block) for block in waiting])
        waiting.clear()

    for role, blocks in turns:
        if role == "system":
            waiting += blocks
            continue
        if role == "assistant" and blocks:
            place()
        _append(placed, role, blocks)
    place()
    return placed


def _append(turns: list[tuple[Role, list[Item]]], role: Role, blocks: Sequence[Item]) -> None:
    if turns and turns[-1][0] == role:
        turns[-1][1].extend(blocks)
    elif blocks:
        turns.append((role, list(blocks)))


def marked(text: str) -> str:
    return _MARKED.format(text)


def _marked(blocks: Sequence[Block]) -> list[Block]:
    return [replace(part, text=marked(part.text)) for part in blocks if isinstance(part, Text) and part.text.strip()]
