"""Differences between two versions: the prompt line by line, variables and tools by name, the rest by value. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Literal

from prompts.content import VersionContent
from prompts.line_diff import Parts, compare_lines

# Above this many pairs of lines the middle part counts as replaced: comparing takes time in proportion to the pairs.
MAX_LINE_PAIRS = 4_000_000
# Only so many changed lines are compared word by word; nobody reads the marks of more.
MAX_COMPARED_LINES = 500
PARAMETERS = ("model", "temperature", "max_tokens", "response_format")

Kind = Literal["equal", "changed", "removed", "added"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the two columns; a side without a line is None. Line numbers begin at 1. The parts of a changed row
    say which words of its lines differ; they are None in other rows, and after the first `MAX_COMPARED_LINES`."""

    kind: Kind
    from_line: int | None
    from_text: str | None
    to_line: int | None
    to_text: str | None
    from_parts: Parts | None = None
    to_parts: Parts | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a named item: `before` is None when it was added, `after` when it was removed."""

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
    """The differences between two versions; an empty field is unchanged, and `system_prompt` has all lines."""

    system_prompt: tuple[Row, ...]
    variables: tuple[Change, ...]
    tools: tuple[Change, ...]
    parameters: tuple[Change, ...]


def diff_contents(before: VersionContent, after: VersionContent) -> VersionDiff:
    return VersionDiff(
        system_prompt=diff_texts(before.system_prompt, after.system_prompt),
        variables=_changes(_variables(before), _variables(after)),
        tools=_changes(_tools(before), _tools(after)),
        parameters=_changes(_parameters(before), _parameters(after)),
    )


def diff_texts(before: str, after: str) -> tuple[Row, ...]:
    """Returns the rows of two texts, line by line, with the words that differ within changed lines."""
    left = MAX_COMPARED_LINES
    rows: list[Row] = []
    for row in _rows(before.split("\n"), after.split("\n")):
        if left and row.kind == "changed" and row.from_text is not None and row.to_text is not None:
            from_parts, to_parts = compare_lines(row.from_text, row.to_text)
            row = replace(row, from_parts=from_parts, to_parts=to_parts)
            left -= 1
        rows.append(row)
    return tuple(rows)


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    for tag, i1, i2, j1, j2 in _opcodes(before, after):
        paired = min(i2 - i1, j2 - j1) if tag in ("equal", "replace") else 0
        for step in range(paired):
            i, j = i1 + step, j1 + step
            yield Row("equal" if tag == "equal" else "changed", i + 1, before[i], j + 1, after[j])
        for i in range(i1 + paired, i2):
            yield Row("removed", i + 1, before[i], None, None)
        for j in range(j1 + paired, j2):
            yield Row("added", None, None, j + 1, after[j])


def _opcodes(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Returns SequenceMatcher's opcodes, with the common beginning and end found in one pass."""
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
    """Returns the changes in the order of `before`, with additions last."""
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
    """Returns the parameters that are set."""
    values = {name: getattr(content, name) for name in PARAMETERS}
    return {name: value for name, value in values.items() if value not in (None, "")}
