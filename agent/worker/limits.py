"""The limits of one chat. Its time limits are settings (`config/settings/agent.py`)."""

from __future__ import annotations

MESSAGE_CHARACTERS = 32_000
"""The largest user message: a long question with a quoted log fits, a book does not."""

PAGE_CHARACTERS = 500
PAGE_DATA_BYTES = 32_768
"""The largest context of a page, as JSON: about as much as the largest result of a tool."""
PAGE_DATA_DEPTH = 20

STEPS = 8
"""Rounds of tool calls. The stories of the product take one to three; after the last one the model has to answer."""

CALLS_PER_STEP = 8
"""Calls of one round; more are answered with an error. At 24,000 characters each, a round fits the context."""

PARALLEL_CALLS = 4
"""The largest number of simultaneous calls of one chat: one chat must not take the database from the other users."""

TOOL_THREADS = 8
"""Threads of one worker for tools. They are their own: tools that hang must not hold up the gateway's."""

RUN_TOKENS = 400_000
"""Tokens in and out over all steps, by the providers' count. Above it the model has to answer with what it has."""

OUTPUT_CHARACTERS = 100_000
"""The largest size of one chat's texts, reasoning and arguments: a model that repeats itself is stopped."""

CONTEXT_CHARACTERS = 240_000
"""Sent to the model at a time, some 60,000 tokens: models with a window of 128,000 have room for it and an answer."""

MCP_BODY_BYTES = 262_144
"""The largest message of an MCP client: the arguments of a tool are filters and ids."""
