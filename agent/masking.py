"""Personal data in what the agent reads, taken out where the project wants none of it said. Pure, and not cheap.

The project's guardrails look at what a person types. What tools give, what a page shows and what the agent made of it
is the project's own log: it is not refused, but masked by the same rules, before it is kept, shown or sent to a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from agent.models import Message, Role
from gateway.guardrails.output.masks import Masks
from gateway.guardrails.settings import GuardrailSettings, TrustMode

# A point of time is nobody's telephone number, nor is a length of time.
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_LENGTHS = ("_ms", "_ns", "_us", "_seconds", "_tokens", "_count")

_masks = Masks(personal_data=True, links=False, texts=tuple)


def wants_masks(guardrails: GuardrailSettings) -> bool:
    """Whether the project refuses or masks personal data."""
    enforced = guardrails.trust_mode is TrustMode.ENFORCE
    return enforced and (guardrails.pii_block_on_detect or guardrails.mask_output_pii)


def masked_text(text: str) -> str:
    """With the kind of each piece of personal data in its place, as `[EMAIL]`."""
    if not _masks.suspects(text, 0, len(text)):
        return text
    out, place = [], 0
    for mask in _masks.find(text):
        out += [text[place : mask.start], mask.text]
        place = mask.end
    return "".join([*out, text[place:]])


def masked_result(content: str) -> str:
    """Of a tool: JSON stays JSON, with times and figures as they are."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return masked_text(content)
    return json.dumps(masked_value(value), ensure_ascii=False, separators=(",", ":"))


def masked_value(value: Any, name: str = "") -> Any:
    """Every text in a value of JSON, and every number that is one of a card. `name` is that of its field."""
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
    """Stored messages, in place and not in the database: what was said before the project wanted masks."""
    for row in rows:
        if row.role != Role.USER:
            mask: Callable[[str], str] = masked_result if row.role == Role.TOOL else masked_text
            row.content = mask(row.content)
        if row.page_context:
            row.page_context = _masked_page(row.page_context)


def _masked_page(shown: dict[str, Any]) -> dict[str, Any] | None:
    """None for one that is nested too deeply to be looked at."""
    try:
        masked: dict[str, Any] = masked_value(shown)
    except RecursionError:
        return None
    return masked
