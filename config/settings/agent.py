from __future__ import annotations

from config import env

# The time limits in seconds of a whole chat, of each call to a model in it, and of each call to a tool.
AGENT_RUN_SECONDS = env.number("AGENT_RUN_SECONDS", 300.0, minimum=0.1, maximum=3600)
AGENT_STEP_SECONDS = env.number("AGENT_STEP_SECONDS", 120.0, minimum=0.1, maximum=3600)
AGENT_TOOL_SECONDS = env.number("AGENT_TOOL_SECONDS", 30.0, minimum=0.1, maximum=600)
# A chat whose worker has not renewed its lease for this long counts as dead; workers renew three times as often.
AGENT_LEASE_SECONDS = env.number("AGENT_LEASE_SECONDS", 30.0, minimum=0.3, maximum=600)
