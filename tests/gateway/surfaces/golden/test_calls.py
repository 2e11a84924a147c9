"""Calls of tools whose fragments alternate in the chunks of a chat completion: both surfaces write them one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.native import canonical
from tests.gateway.surfaces.golden.answers import STREAMED
from tests.gateway.surfaces.golden.order import CHECKS
from tests.gateway.surfaces.golden.streams import REQUEST_ID, SURFACES, request_of
from tests.gateway.surfaces.messages.clients import LAST, chunk

ARGUMENTS = ('{"city": "Oslo"}', "{}", '{"zone": "CET", "at": [1, 2]}')
SURFACE = pytest.mark.parametrize("surface", ["responses", "messages"])


def begin(number: int, arguments: str = "") -> bytes:
    function = {"name": f"tool_{number}", "arguments": arguments}
    return chunk({"tool_calls": [{"index": number, "id": f"call_{number}", "type": "function", "function": function}]})


def more(number: int, arguments: str) -> bytes:
    return chunk({"tool_calls": [{"index": number, "function": {"arguments": arguments}}]})


def streamed(surface: str, chunks: list[bytes]) -> bytes:
    stream = SURFACES[surface].stream(request_of(surface), REQUEST_ID)
    return b"".join([*(stream.feed([one]) for one in chunks), stream.close([LAST])])


@SURFACE
def test_call__behind_a_whole_one__ends_it_at_once(surface: str) -> None:
    stream = SURFACES[surface].stream(request_of(surface), REQUEST_ID)
    stream.feed([begin(0), more(0, ARGUMENTS[0])])
    frames = stream.feed([begin(1)])
    ending = b"response.output_item.done" if surface == "responses" else b"content_block_stop"
    assert frames.index(ending) < frames.index(b"tool_1")


@SURFACE
@given(data=st.data())
def test_calls__alternating__come_one_behind_the_other(surface: str, data: st.DataObject) -> None:
    left: dict[int, list[bytes]] = {}
    for number, arguments in enumerate(ARGUMENTS):
        half = data.draw(st.integers(0, len(arguments)))
        left[number] = [begin(number), more(number, arguments[:half]), more(number, arguments[half:])]
    chunks = [left[number].pop(0) for number in left]
    while pending := [number for number, pieces in left.items() if pieces]:
        chunks.append(left[data.draw(st.sampled_from(pending))].pop(0))

    frames = streamed(surface, chunks)

    CHECKS[surface](frames)
    expected = tuple((f"tool_{number}", canonical(arguments)) for number, arguments in enumerate(ARGUMENTS))
    assert STREAMED[surface](frames).calls == expected


@SURFACE
def test_calls__without_arguments__are_all_there(surface: str) -> None:
    frames = streamed(surface, [begin(0), begin(1)])

    CHECKS[surface](frames)
    assert [name for name, _ in STREAMED[surface](frames).calls] == ["tool_0", "tool_1"]
