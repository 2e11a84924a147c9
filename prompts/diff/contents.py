"""Differences between two versions: the texts line by line, variables and tools by name, the rest by value. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Literal

from prompts.content.templating import RoleAndText
from prompts.content.version import VersionContent
from prompts.diff.lines import Parts, compare_lines

# Above this many pairs of lines the middle part counts as replaced: comparing takes time in proportion to the pairs.
MAX_LINE_PAIRS = 4_000_000
# Only so many changed lines are compared word by word; nobody reads the marks of more.
MAX_COMPARED_LINES = 500
PARAMETERS = ("model", "temperature", "max_tokens", "response_format")

Kind = Literal["equal", "changed", "removed", "added"]


@dataclass(frozen=True, slots=True)
class PromptLine:
    """A row of the two columns; a side without a line is None. Line numbers begin at 1. The parts of a changed row tell
    which words differ; they are None in other rows, and after the first `MAX_COMPARED_LINES`."""

    kind: Kind
    from_line: int | None
    from_text: str | None
    to_line: int | None
    to_text: str | None
    from_parts: Parts | None
    to_parts: Parts | None


@dataclass(frozen=True, slots=True)
class PromptMessageChange:
    """A message of one or both versions; a side without it is None. Indexes begin at 0. A `changed` message has another
    role or text; `lines` are the rows of the texts."""

    kind: Kind
    from_index: int | None
    from_role: str | None
    to_index: int | None
    to_role: str | None
    lines: tuple[PromptLine, ...]

    @property
    def heading(self) -> str:
        if self.from_role and self.to_role and self.from_role != self.to_role:
            return f"{self.from_role}, now {self.to_role}"
        role = self.to_role or self.from_role or ""
        return f"{role}, {self.kind}" if self.kind in ("added", "removed") else role


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    before: Any
    after: Any

    @property
    def kind(self) -> Kind:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """A field without differences is empty. `system_prompt` has all lines. `messages` has all messages, the system
    prompt among them, and is empty if neither version has messages."""

    system_prompt: tuple[PromptLine, ...]
    messages: tuple[PromptMessageChange, ...]
    variables: tuple[Change, ...]
    tools: tuple[Change, ...]
    parameters: tuple[Change, ...]

    @property
    def sections(self) -> list[tuple[str, tuple[PromptLine, ...]]]:
        if not self.messages:
            return [("", self.system_prompt)]
        return [(message.heading, message.lines) for message in self.messages]

    @property
    def rows(self) -> list[PromptLine]:
        return [row for _, rows in self.sections for row in rows]


def diff_contents(before: VersionContent, after: VersionContent) -> VersionDiff:
    if before.messages or after.messages:
        # One of the two texts, or both, is empty.
        prompts = _whole(before.system_prompt, "") + _whole("", after.system_prompt)
        messages = diff_messages(before.texts, after.texts)
    else:
        prompts, messages = diff_texts(before.system_prompt, after.system_prompt), ()
    return VersionDiff(
        system_prompt=prompts,
        messages=messages,
        variables=_changes(_variables(before), _variables(after)),
        tools=_changes(_tools(before), _tools(after)),
        parameters=_changes(_parameters(before), _parameters(after)),
    )


def _whole(before: str, after: str) -> tuple[PromptLine, ...]:
    return (*_only("removed", _lines(before), 1), *_only("added", _lines(after), 1))


def _only(kind: Kind, lines: Iterable[str], first: int) -> Iterator[PromptLine]:
    for number, line in enumerate(lines, first):
        if kind == "removed":
            yield PromptLine(kind, number, line, None, None, None, None)
        else:
            yield PromptLine(kind, None, None, number, line, None, None)


def diff_messages(before: Sequence[RoleAndText], after: Sequence[RoleAndText]) -> tuple[PromptMessageChange, ...]:
    found: list[PromptMessageChange] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        paired = min(i2 - i1, j2 - j1)
        for step in range(paired):
            (from_role, from_text), (to_role, to_text) = before[i1 + step], after[j1 + step]
            rows = diff_texts(from_text, to_text)
            kind: Kind = "equal" if tag == "equal" else "changed"
            found.append(PromptMessageChange(kind, i1 + step, from_role, j1 + step, to_role, rows))
        for i in range(i1 + paired, i2):
            role, text = before[i]
            found.append(PromptMessageChange("removed", i, role, None, None, _whole(text, "")))
        for j in range(j1 + paired, j2):
            role, text = after[j]
            found.append(PromptMessageChange("added", None, None, j, role, _whole("", text)))
    return tuple(found)


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def diff_texts(before: str, after: str) -> tuple[PromptLine, ...]:
    left = MAX_COMPARED_LINES
    rows: list[PromptLine] = []
    for row in _rows(before.split("\n"), after.split("\n")):
        if left and row.kind == "changed" and row.from_text is not None and row.to_text is not None:
            from_parts, to_parts = compare_lines(row.from_text, row.to_text)
            row = replace(row, from_parts=from_parts, to_parts=to_parts)
            left -= 1
        rows.append(row)
    return tuple(rows)


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[PromptLine]:
    for tag, i1, i2, j1, j2 in _opcodes(before, after):
        paired = min(i2 - i1, j2 - j1) if tag in ("equal", "replace") else 0
        for step in range(paired):
            i, j = i1 + step, j1 + step
            yield PromptLine("equal" if tag == "equal" else "changed", i + 1, before[i], j + 1, after[j], None, None)
        yield from _only("removed", before[i1 + paired : i2], i1 + paired + 1)
        yield from _only("added", after[j1 + paired : j2], j1 + paired + 1)


def _opcodes(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Returns SequenceMatcher's opcodes, but finds the common beginning and end in one pass."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    i_end, j_end = len(before) - end, len(after) - end
    if start:
        yield "equal", 0, start, 0, start
    if (i_end - start) * (j_end - start) > MAX_LINE_PAIRS:
        yield "replace", start, i_end, start, j_end
    else:
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, before[start:i_end], after[start:j_end]).get_opcodes():
            yield tag, start + i1, start + i2, start + j1, start + j2
    if end:
        yield "equal", i_end, len(before), j_end, len(after)


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    length = 0
    for left, right in zip(before, after, strict=False):
        if left != right:
            break
        length += 1
    return length


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    names = dict.fromkeys([*before, *after])
    pairs = [Change(name, before.get(name), after.get(name)) for name in names]
    return tuple(change for change in pairs if not _same(change.before, change.after))


def _same(left: Any, right: Any) -> bool:
    # Values are compared as JSON text: models see the order of members, and True differs from 1.
    return repr(left) == repr(right)


def _variables(content: VersionContent) -> dict[str, Any]:
    return {variable["name"]: variable for variable in content.variables}


def _tools(content: VersionContent) -> dict[str, Any]:
    return {tool["function"]["name"]: tool for tool in content.tools}


def _parameters(content: VersionContent) -> dict[str, Any]:
    values = {name: getattr(content, name) for name in PARAMETERS}
    return {name: value for name, value in values.items() if value not in (None, "")}
