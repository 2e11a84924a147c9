from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from prompts.content.version import VersionContent
from prompts.diff.contents import diff_contents

lines = st.lists(st.sampled_from(["", "a", "b", "c", "  a"]), max_size=12)


@given(before=lines, after=lines)
def test_diff__any_two_texts__each_side_reads_as_its_version(before: list[str], after: list[str]) -> None:
    left, right = "\n".join(before), "\n".join(after)
    rows = diff_contents(VersionContent(left), VersionContent(right)).system_prompt
    assert "\n".join(row.from_text for row in rows if row.from_text is not None) == left
    assert "\n".join(row.to_text for row in rows if row.to_text is not None) == right
    assert [row.from_line for row in rows if row.from_line] == list(range(1, left.count("\n") + 2))
    assert [row.to_line for row in rows if row.to_line] == list(range(1, right.count("\n") + 2))
    for row in rows:
        assert (row.kind == "equal") == (row.from_text == row.to_text)
        assert (row.kind == "removed") == (row.to_text is None)
        assert (row.kind == "added") == (row.from_text is None)


@given(text=lines)
def test_diff__same_text__all_equal(text: list[str]) -> None:
    content = VersionContent("\n".join(text), temperature=1.0, tools=[{"function": {"name": "f"}}])
    diff = diff_contents(content, content)
    assert {row.kind for row in diff.system_prompt} == {"equal"}
    assert diff.tools == diff.variables == diff.parameters == ()


def test_diff__two_long_texts_without_a_common_line__shown_as_replaced_without_comparing() -> None:
    before = "\n".join(["start", *(f"a{n}" for n in range(100_000)), "end"])
    after = "\n".join(["start", *(f"b{n}" for n in range(90_000)), "end"])
    rows = diff_contents(VersionContent(before), VersionContent(after)).system_prompt
    assert [row.kind for row in (rows[0], rows[1], rows[90_000], rows[90_001], rows[-1])] == [
        "equal",
        "changed",
        "changed",
        "removed",
        "equal",
    ]


def test_diff__order_of_members_and_kind_of_number__are_changes() -> None:
    def content(parameters: Mapping[str, object]) -> VersionContent:
        return VersionContent("", tools=[{"type": "function", "function": {"name": "f", "parameters": parameters}}])

    for before, after in (({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({"a": 1}, {"a": True}), ({"a": 1}, {"a": 1.0})):
        (change,) = diff_contents(content(before), content(after)).tools
        assert (change.name, change.kind) == ("f", "changed")


def test_diff__parameters__those_that_differ() -> None:
    before = VersionContent("", model="a", temperature=0.0, max_tokens=5, response_format={"type": "text"})
    after = VersionContent("", model="b", max_tokens=5, response_format={"type": "json_object"})
    changes = diff_contents(before, after).parameters
    assert [(change.name, change.kind) for change in changes] == [
        ("model", "changed"),
        ("temperature", "removed"),
        ("response_format", "changed"),
    ]


def test_diff__changed_line__has_the_words_that_differ() -> None:
    before, after = VersionContent("You help kindly.\nSame."), VersionContent("You always help quickly.\nSame.")

    changed, equal = diff_contents(before, after).system_prompt

    assert changed.from_parts is not None and changed.to_parts is not None
    assert [part.text for part in changed.from_parts if part.changed] == ["kindly"]
    assert [part.text.strip() for part in changed.to_parts if part.changed] == ["always", "quickly"]
    assert "".join(part.text for part in changed.to_parts) == "You always help quickly."
    assert (equal.from_parts, equal.to_parts) == (None, None)


def test_diff__lines_with_little_in_common_or_too_long__changed_as_a_whole() -> None:
    for before, after in (("abc def", "uvw xyz klm"), ("a " * 2000, "b " * 2000)):
        (row,) = diff_contents(VersionContent(before), VersionContent(after)).system_prompt
        assert row.from_parts is not None and row.to_parts is not None
        assert [part.changed for part in (*row.from_parts, *row.to_parts)] == [True, True]


@given(before=st.text(max_size=40), after=st.text(max_size=40))
def test_diff__any_two_lines__parts_read_as_the_lines(before: str, after: str) -> None:
    for row in diff_contents(VersionContent(before), VersionContent(after)).system_prompt:
        if row.kind == "changed":
            assert "".join(part.text for part in row.from_parts or ()) == row.from_text
            assert "".join(part.text for part in row.to_parts or ()) == row.to_text
