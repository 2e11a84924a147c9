"""The in-app agent: how long its chats may take. What else bounds them is in `agent/limits.py`."""

from __future__ import annotations

from config import env

# A whole chat, each call of a model in it, and each call of a tool.
AGENT_RUN_SECONDS = env.number("AGENT_RUN_SECONDS", 300.0, minimum=0.1, maximum=3600)
AGENT_STEP_SECONDS = env.number("AGENT_STEP_SECONDS", 120.0, minimum=0.1, maximum=3600)
AGENT_TOOL_SECONDS = env.number("AGENT_TOOL_SECONDS", 30.0, minimum=0.1, maximum=600)
# After so long without a word of its worker, a chat under way is held to be dead; renewed three times as often.
AGENT_LEASE_SECONDS = env.number("AGENT_LEASE_SECONDS", 30.0, minimum=0.3, maximum=600)
