from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gateway.guardrails.output.json_window import JsonWindow
from gateway.guardrails.output.masks import Masks
from gateway.guardrails.output.window import Notes, TextWindow
from gateway.guardrails.tools import same_tool
from gateway.guardrails.verdicts import Guardrail
from gateway.project_settings.guardrails import GuardrailSettings

Path = tuple[str | int | None, ...]

# These fields hold names, kinds and opaque bytes, no text for a reader.
_NOT_TEXT = frozenset(
    {
        "id", "type", "role", "name", "object", "format", "model", "finish_reason", "signature", "thought_signature",
        "data", "encrypted_content", "b64_json", "media_type", "mime_type", "call_id", "tool_call_id", "file_id",
        "expires_at", "system_fingerprint", "service_tier", "provider", "thoughtSignature", "continuationToken",
    }
)  # fmt: skip
# The texts of these fields are streamed in pieces; every other field of a chunk comes whole.
_IN_PIECES = frozenset(
    {"content", "refusal", "reasoning_content", "reasoning", "arguments", "input", "transcript", "text", "summary",
     "thinking"}
)  # fmt: skip
_SIGNATURES = ("signature", "thoughtSignature")
_JSON = frozenset({"arguments"})
# In these fields links are left in: a person does not click on a tool's arguments, and a search is meant to contain the
# question.
_FOR_TOOLS = frozenset({"arguments", "input"})
_FILES = frozenset({"url", "image_url", "file_data"})
_MAX_NESTING = 60


class Found(NamedTuple):
    guardrail: Guardrail
    detail: str


class OutputChecks:
    def __init__(
        self, settings: GuardrailSettings, texts: Callable[[], Iterable[str]], *, json_content: bool = False
    ) -> None:
        self.masks = Masks(personal_data=settings.mask_output_pii, links=settings.block_exfiltration_urls, texts=texts)
        self._masks_of_calls = Masks(personal_data=settings.mask_output_pii, links=False, texts=texts)
        self.topics = settings.blocked_output_topics
        self._tools = {same_tool(name): name for name in settings.blocked_tools}
        self._json_content = json_content
        self._notes = Notes()
        self._called: dict[str, None] = {}

    @property
    def reads_texts(self) -> bool:
        return self.masks.any or bool(self.topics)

    def window(self, name: str) -> TextWindow:
        is_json = name in _JSON or (self._json_content and name == "content")
        masks = self._masks_of_calls if name in _FOR_TOOLS else self.masks
        return (JsonWindow if is_json else TextWindow)(masks, self.topics, self._notes)

    def masked(self, text: str, name: str = "") -> str:
        if name in _FILES and text.startswith("data:"):
            return text
        window = self.window(name)
        return window.feed(text) + window.finish()

    def inspect_calls(self, message: Mapping[str, Any]) -> None:
        if not self._tools:
            return
        calls = message.get("tool_calls")
        for call in (*(calls if isinstance(calls, list) else ()), {"function": message.get("function_call")}):
            for tool in (call.get("function"), call.get("custom")) if isinstance(call, dict) else ():
                name = tool.get("name") if isinstance(tool, dict) else None
                if isinstance(name, str) and same_tool(name) in self._tools:
                    self._called[self._tools[same_tool(name)]] = None

    def blocking(self) -> list[Found]:
        return [
            *(Found(Guardrail.BLOCKED_TOOL, tool) for tool in self._called),
            *(Found(Guardrail.BLOCKED_TOPIC, topic) for topic in self._notes.topics),
        ]

    def masking(self) -> list[Found]:
        return [Found(*found) for found in self._notes.masked]

    def guard_message(self, message: dict[str, Any]) -> bool:
        self.inspect_calls(message)
        return self.reads_texts and self.guard_value(message)

    def guard_value(self, value: Any, name: str = "", depth: int = 0) -> bool:
        if depth > _MAX_NESTING:
            return False
        changed = False
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in list(items):
            own = key if isinstance(value, dict) else name
            if own in _NOT_TEXT:
                continue
            if isinstance(item, str):
                masked = self.masked(item, own) if item else item
                if masked != item:
                    value[key] = masked
                    changed = True
            elif isinstance(item, dict | list):
                changed |= self.guard_value(item, own, depth + 1)
        if changed and isinstance(value, dict):
            # The provider signed the text as it was before masking, so the signature is removed.
            for signature in _SIGNATURES:
                value.pop(signature, None)
        return changed


def comes_in_pieces(name: str) -> bool:
    return name in _IN_PIECES


def is_text(name: str) -> bool:
    return name not in _NOT_TEXT
