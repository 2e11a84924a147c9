"""Masks personal data in the texts that the agent reads, for projects that want it masked. Pure, and CPU-intensive.

The project's guardrails check what a person types. Tool results, page contexts and the agent's answers come from the
project's own log: they are masked by the same rules before they are stored, shown or sent to a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from agent.models import Message, Role
from gateway.guardrails.output.masks import Masks
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode

# Times and durations match the pattern of telephone numbers.
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_LENGTHS = ("_ms", "_ns", "_us", "_seconds", "_tokens", "_count")

_masks = Masks(personal_data=True, links=False, texts=tuple)


def wants_masks(guardrails: GuardrailSettings) -> bool:
    enforced = guardrails.trust_mode is TrustMode.ENFORCE
    return enforced and (guardrails.pii_block_on_detect or guardrails.mask_output_pii)


def masked_text(text: str) -> str:
    if not _masks.suspects(text, 0, len(text)):
        return text
    out, place = [], 0
    for mask in _masks.find(text):
        out += [text[place : mask.start], mask.text]
        place = mask.end
    return "".join([*out, text[place:]])


def masked_result(content: str) -> str:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return masked_text(content)
    return json.dumps(masked_value(value), ensure_ascii=False, separators=(",", ":"))


def masked_value(value: Any, name: str = "") -> Any:
    """Masks every text in a JSON value, and every card number. `name` is the value's field."""
    if isinstance(value, str):
        return value if _TIME.fullmatch(value) else masked_text(value)
    if isinstance(value, dict):
        return {masked_text(key): masked_value(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [masked_value(item, name) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not name.endswith(_LENGTHS):
        shown = str(value)
        hidden = masked_text(shown)
        return value if hidden == shown else hidden
    return value


def mask_rows(rows: Iterable[Message]) -> None:
    """Masks stored messages in memory: they may be older than the project's setting."""
    for row in rows:
        if row.role != Role.USER:
            mask: Callable[[str], str] = masked_result if row.role == Role.TOOL else masked_text
            row.content = mask(row.content)
        if row.page_context:
            row.page_context = _masked_page(row.page_context)


def _masked_page(shown: dict[str, Any]) -> dict[str, Any] | None:
    try:
        masked: dict[str, Any] = masked_value(shown)
    except RecursionError:
        return None
    return masked
