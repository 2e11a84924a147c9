"""Tests the differences of look-alikes of the OpenAI dialect in their answers: the name of reasoning, breaking off,
errors."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.integrations.exchanges import chunk, translator

# The texts could be mistaken for a key of the chunk.
TEXTS = st.one_of(
    st.text(max_size=30), st.sampled_from(['"reasoning":"', '\\"reasoning":"', '{"reasoning":"x"}', "ß\u2028"])
)


@given(reasoning=TEXTS, content=TEXTS, spaced=st.booleans(), ascii_only=st.booleans())
def test_stream__any_reasoning_and_text__nothing_else_changes(
    reasoning: str, content: str, spaced: bool, ascii_only: bool
) -> None:
    sent = chunk({"reasoning": reasoning, "content": content})
    separators = None if spaced else (",", ":")
    line = b"data: " + json.dumps(sent, separators=separators, ensure_ascii=ascii_only).encode() + b"\n\n"
    (event,) = translator("groq").feed(line)
    parsed_chunk = json.loads(event.data)
    assert parsed_chunk["choices"][0]["delta"].pop("reasoning_content", "") == reasoning
    assert parsed_chunk == sent
    assert event.text == content
