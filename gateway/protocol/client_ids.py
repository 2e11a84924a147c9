from __future__ import annotations

import re
from collections.abc import Iterable

MAX_ID_CHARACTERS = 200
_ID = re.compile(rf"[!-~]{{1,{MAX_ID_CHARACTERS}}}")

# The headers in which coding agents name their session, the most specific first.
SESSION_HEADERS: tuple[bytes, ...] = (
    # Claude Code: https://code.claude.com/docs/en/llm-gateway-protocol
    b"x-claude-code-session-id",
    # OpenCode: https://opencode.ai/docs/go/
    b"x-opencode-session",
    # Codex, by its releases, and pi on the Responses API.
    b"session-id",
    b"session_id",
    # OpenCode beside its own service, and pi.
    b"x-session-affinity",
    # OpenCode and agents that follow it.
    b"x-session-id",
)


def valid_id(text: str) -> str:
    text = text.strip()
    return text if _ID.fullmatch(text) else ""


def session_of_agent(raw: Iterable[tuple[bytes, bytes]]) -> str:
    found = {name: value for name, value in raw if name in SESSION_HEADERS}
    return next((text for name in SESSION_HEADERS if (text := valid_id(found.get(name, b"").decode("latin-1")))), "")
