"""Random requests of plain form, some of them spoilt."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

HOSTILE = (
    "Hi",
    "null",
    '"assistant"',
    '"untrusted"',
    '"cache_control": {}',
    "cache_",
    '"n": 1',
    '"user": "a"',
    '"stream": true',
    "function",
    '"type": "text"',
    "\\u006e",
    "\n\t\\",
    "日本語 ü",
    "\ud800",
    "<think>a</think>",
    "reasoning",
    "is_error",
)
TEXT = st.sampled_from(HOSTILE) | st.text(max_size=20)
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": TEXT})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "temperature": st.sampled_from([0, 0.5, 2, 1e-7]),
    "max_tokens": st.sampled_from([1, 1_000_000]),
    "max_completion_tokens": st.just(9),
    "top_p": st.sampled_from([0, 0.5, 1]),
    "n": st.integers(1, 10),
    "stream": st.booleans(),
    "stop": TEXT | st.lists(TEXT, max_size=4),
    "frequency_penalty": st.sampled_from([-2, 0.5]),
    "presence_penalty": st.sampled_from([0, 2.0]),
    "user": TEXT,
    "seed": st.sampled_from([0, -1, 10**30]),
    "reasoning_effort": st.sampled_from(["low", "none"]),
    "prompt_config": st.sampled_from(["", "p"]),
}
PLAIN_BODIES = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(MESSAGE, min_size=1, max_size=4)}, optional=FIELDS
)
