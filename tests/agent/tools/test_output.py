from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.base import OUTPUT_CHARACTERS
from agent.tools.output import render
from tests.agent.tools.calls import calls
from tests.agent.tools.world import World, make_world
from tests.factories.analytics import make_entry, store
from tests.factories.prompts import make_version
from tests.factories.scores import make_score
from tests.night import examples

_TEXT = st.one_of(st.text(), st.text(min_size=1).map(lambda text: text * 9_000), st.just('"\\\n' * 20_000))
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        inner.map(lambda value: [value] * 150),
        st.dictionaries(st.text(), inner, max_size=5),
        inner.map(lambda value: {f"name {number}": value for number in range(120)}),
    ),
    max_leaves=4,
)


@settings(max_examples=examples(15, 60), deadline=None)
@given(st.dictionaries(st.text(), _VALUES, max_size=4))
def test_render__anything__json_within_the_bound(result: dict[str, Any]) -> None:
    text = render(result)
    assert len(text) <= OUTPUT_CHARACTERS
    assert isinstance(json.loads(text), dict)


@settings(max_examples=examples(10, 40), deadline=None)
@given(st.lists(_VALUES, max_size=60), st.integers(0, 1000))
def test_render__a_list_of_anything__whole_records_and_where_to_go_on(records: list[Any], offset: int) -> None:
    page = {"count": 5_000, "offset": offset, "next_offset": offset + len(records), "results": records}
    text = render(page)
    found = json.loads(text)
    assert len(text) <= OUTPUT_CHARACTERS
    if "results" in found:
        assert found["next_offset"] == offset + len(found["results"])
        assert found.get("truncated", False) == (len(found["results"]) < len(records))
        assert found["results"] or not records


def test_render__deeper_than_anybody_reads__cut() -> None:
    nested: Any = "end"
    for _ in range(200):
        nested = {"in": [nested]}

    assert "nested too deeply" in render({"request": nested})


def test_render__objects_of_objects_without_end__error_too_large() -> None:
    wide: Any = 1
    for _ in range(4):
        wide = {f"name {number}": wide for number in range(120)}

    rendered = render({"request": wide}), render({"results": [{"request": wide}], "offset": 0})
    # The values are compared as texts, so that no failure report prints them in full.
    assert ["too large" in text for text in rendered] == [True, True]


def test_render__long_text__tells_how_much_is_gone() -> None:
    assert json.loads(render({"text": "a" * 50_000}))["text"] == "a" * 20_000 + "… [30000 characters cut]"


def test_render__long_list_within_a_record__beginning_and_end() -> None:
    found = json.loads(render({"messages": list(range(1_000))}))["messages"]

    assert (found[:2], found[50], found[-1]) == ([0, 1], "… 900 items left out …", 999)


def test_render__what_old_rows_hold__still_text() -> None:
    assert json.loads(render({"text": "a\ud800b\x00"})) == {"text": "a?b\x00"}


@pytest.fixture
def huge(world: World, spool: Path) -> World:
    message = {"role": "user", "content": 'ünd so weiter "\\ ' * 2_000}
    body = json.dumps({"messages": [message] * 10}).encode()
    verdicts = json.dumps([{"rule": "umber " * 3_000}] * 30)
    many = [
        make_entry(
            b"" if index else body,
            b"" if index else body,
            project_id=str(world.project.pk),
            session_id=world.session_id,
            user_id="umber-user",
            error_type="api_error",
            error_code="provider_error",
            error_message="umber " * 2_000,
            attributes={f"name {number}": verdicts for number in range(3)} if not index else {},
        )
        for index in range(30)
    ]
    store(spool, *many)
    for _ in range(20):
        make_version(world.config, "Say umber twice.\n" * 5_000, commit_message="c" * 900)
    for index in range(40):
        make_score(world.project, request_id=world.request_ids[0], score_name=f"s{index}", reason="because " * 1_200)
    world.request_ids.insert(0, many[0].record.request_id)
    return world


def test_every_tool__huge_rows__within_the_bound(huge: World) -> None:
    for name, arguments in calls(huge).items():
        outcome = huge.call(name, arguments)
        assert len(outcome.content) <= OUTPUT_CHARACTERS, name
        assert not outcome.is_error, outcome.content
        json.loads(outcome.content)


def test_lists__huge_rows__following_next_offset_tells_each_once(huge: World) -> None:
    """Following `next_offset` gives each row once, although no page holds as many rows as the call's limit."""
    for name in ("list_requests", "list_scores", "list_prompt_versions", "list_session_requests"):
        pages = list(_pages(huge, name))
        seen = [row.get("id") or row["request_id"] for page in pages for row in page["results"]]
        assert any(page.get("truncated") for page in pages)
        assert len(seen) == len(set(seen)) == pages[0]["count"]


def _pages(world: World, name: str) -> Iterator[dict[str, Any]]:
    offset: int | None = 0
    while offset is not None:
        page = world.ask(name, **{**calls(world)[name], "limit": 100, "offset": offset})
        yield page
        offset = page["next_offset"]


def test_get_prompt_version__long_prompt__cut_to_the_room(huge: World) -> None:
    found = huge.ask("get_prompt_version", config=huge.config.name, version="5")

    assert found["system_prompt"].startswith("Say umber twice.\n" * 400)
    assert "characters cut]" in found["system_prompt"]


def test_diff__change_in_a_long_prompt__the_lines_around_it(world: World) -> None:
    lines = [f"line {number}" for number in range(3_000)]
    make_version(world.config, "\n".join(lines))
    lines[1_500] = "another line"
    make_version(world.config, "\n".join(lines))

    found = world.ask("diff_prompt_versions", config=world.config.name, from_version="4", to_version="5")

    assert [row["to_line"] for row in found["system_prompt"]] == [1499, 1500, 1501, 1502, 1503]
    assert found["unchanged_lines_left_out"] == 2_995


def test_page__of_many__tells_the_next(world: World, spool: Path) -> None:
    make_world(spool, "zaffre")
    found = world.ask("list_requests", limit=5, offset=5)

    assert (found["count"], found["limit"], found["offset"], found["next_offset"]) == (12, 5, 5, 10)
    assert world.ask("list_requests", limit=5, offset=10)["next_offset"] is None
