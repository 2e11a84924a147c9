"""The message that most tests send to the sandbox."""

from __future__ import annotations

from typing import Any

HELLO: Any = [{"role": "user", "content": "Hello there, how are you?"}]
