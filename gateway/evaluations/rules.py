"""Scores answers by the kinds of evaluators that ask no model. No network, no database.

Each takes well under a millisecond except the JSON schema, which the checking process bounds
(`gateway.evaluations.schema`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache, singledispatch
from typing import Any

from analytics.evaluators.definitions import (
    Contains,
    Definition,
    Equals,
    Language,
    Length,
    NumericWithin,
    Refusal,
    Regex,
    ToolCall,
    compiled,
)
from gateway.pipeline.internal_client import Reported
from gateway.pipeline.language import language_of_text

REFUSAL_PHRASES = (
    "i can't help",
    "i cannot help",
    "i can't assist",
    "i cannot assist",
    "i can't provide",
    "i cannot provide",
    "i'm unable to",
    "i am unable to",
    "i'm not able to",
    "i am not able to",
    "i won't",
    "i'm sorry, but i can",
    "i am sorry, but i can",
    "sorry, i can",
    "as an ai",
)
"""What refusals begin with, where an evaluator names no phrases of its own."""

_CONTENT_FILTER = "content_filter"
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|[-+]?\.\d+")
_MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """`message` is the assistant's; `expected` is text, JSON, or None."""

    message: Mapping[str, Any]
    messages: Sequence[Any] = ()
    expected: Any = None
    finish_reason: str = ""
    completion_tokens: int = 0
    schema: Mapping[str, Any] | None = None
    other: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        return text_of(self.message.get("content"))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome of an evaluator: a score from 0 to 1, or None with the `reason` why there is none and its `detail`.

    `cost_usd` is what models cost that were asked, None where a price is not known; `request_ids` are their requests.
    `judge_model` is the one that answered last, and `error` the failure of such a request.
    """

    score: float | None
    reason: str = ""
    detail: str = ""
    cost_usd: Decimal | None = Decimal(0)
    request_ids: tuple[str, ...] = ()
    judge_model: str = ""
    error: Reported | None = field(default=None, compare=False)


NO_EXPECTED = Evaluation(None, "no_expected")
"""The evaluator compares with an expected answer, and there is none."""


@singledispatch
def score_by_rule(definition: Definition, answer: Answer) -> Evaluation:
    """Returns the score of an answer by a definition that asks no model. Raises TypeError for other kinds."""
    raise TypeError(f"{definition.kind} is no rule.")


@score_by_rule.register
def _contains(definition: Contains, answer: Answer) -> Evaluation:
    wanted = definition.value if definition.value is not None else _expected_text(answer)
    if wanted is None:
        return NO_EXPECTED
    text = answer.text
    if definition.ignore_case:
        wanted, text = wanted.casefold(), text.casefold()
    return _decided(wanted in text, definition.negated, "The text is there.", "The text is not there.")


@score_by_rule.register
def _regex(definition: Regex, answer: Answer) -> Evaluation:
    pattern = _pattern(definition.pattern, definition.ignore_case)
    is_there = pattern.search(answer.text[:_MAX_CHARACTERS]) is not None
    return _decided(is_there, definition.negated, "The pattern matches.", "The pattern does not match.")


@score_by_rule.register
def _equals(definition: Equals, answer: Answer) -> Evaluation:
    expected = answer.expected
    if expected is None:
        return NO_EXPECTED
    if isinstance(expected, str):
        one, other = answer.text.strip(), expected.strip()
        if definition.ignore_case:
            one, other = one.casefold(), other.casefold()
        return _boolean(one == other, "", "The text differs.")
    try:
        given = json.loads(answer.text)
    except (ValueError, RecursionError):
        return Evaluation(0.0, "The answer is not JSON.")
    return _boolean(_is_same(given, expected), "", "The JSON differs.")


@score_by_rule.register
def _numeric_within(definition: NumericWithin, answer: Answer) -> Evaluation:
    expected = _number(answer.expected)
    if expected is None:
        return NO_EXPECTED
    given = _number(answer.text)
    if given is None:
        return Evaluation(0.0, "The answer has no number.")
    allowed = max(
        Decimal(str(definition.absolute or 0)), abs(expected) * Decimal(str(definition.relative or 0)), Decimal(0)
    )
    return _boolean(abs(given - expected) <= allowed, "", "The number differs.")


@score_by_rule.register
def _tool_call(definition: ToolCall, answer: Answer) -> Evaluation:
    expected = answer.expected if isinstance(answer.expected, Mapping) else {}
    name = definition.name or expected.get("name")
    if not isinstance(name, str):
        return NO_EXPECTED
    wanted = expected.get("arguments")
    calls = [call for call in _calls(answer.message) if call[0] == name]
    if not calls:
        return Evaluation(0.0, "The tool is not called.")
    if definition.arguments == "ignored" or wanted is None:
        return Evaluation(1.0)
    compare = _is_same if definition.arguments == "equal" else _holds
    return _boolean(any(compare(given, wanted) for _, given in calls), "", "The arguments differ.")


@score_by_rule.register
def _length(definition: Length, answer: Answer) -> Evaluation:
    text = answer.text
    count = {"words": len(text.split()), "characters": len(text), "tokens": answer.completion_tokens}[definition.unit]
    reason = f"{count} {definition.unit}"
    if definition.minimum is not None and count < definition.minimum:
        return Evaluation(0.0, reason)
    return _boolean(definition.maximum is None or count <= definition.maximum, reason, reason)


@score_by_rule.register
def _language(definition: Language, answer: Answer) -> Evaluation:
    wanted = definition.language or language_of_text(_last_user_text(answer.messages))
    found = language_of_text(answer.text)
    if not wanted or not found:
        return Evaluation(None, "language_unknown")
    return _boolean(found == wanted, f"The answer is in {found}.", f"The answer is in {found}, not in {wanted}.")


@score_by_rule.register
def _refusal(definition: Refusal, answer: Answer) -> Evaluation:
    phrases = definition.phrases or REFUSAL_PHRASES
    text = answer.text.strip().replace("\u2019", "'").casefold()
    is_refusal = (
        bool(answer.message.get("refusal"))
        or answer.finish_reason == _CONTENT_FILTER
        or text.startswith(tuple(phrase.replace("\u2019", "'").casefold() for phrase in phrases))
    )
    return _boolean(is_refusal == definition.expected, "", "A refusal." if is_refusal else "No refusal.")


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and part.get("text"))


def _last_user_text(messages: Sequence[Any]) -> str:
    for message in reversed(messages):
        if isinstance(message, Mapping) and message.get("role") == "user":
            return text_of(message.get("content"))
    return ""


def _expected_text(answer: Answer) -> str | None:
    expected = answer.expected
    return expected if expected is None or isinstance(expected, str) else json.dumps(expected, ensure_ascii=False)


def _number(given: Any) -> Decimal | None:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Decimal(str(given)) if math.isfinite(given) else None
    numbers = _NUMBER.findall(given[-_MAX_CHARACTERS:]) if isinstance(given, str) else ()
    return Decimal(numbers[-1].replace(",", "")) if numbers else None


def _calls(message: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The called tools with their arguments; those that are not JSON are None."""
    found = []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            try:
                arguments = json.loads(function.get("arguments") or "{}")
            except (ValueError, TypeError, RecursionError):
                arguments = None
            found.append((str(function.get("name")), arguments))
    return found


def _is_same(one: Any, other: Any) -> bool:
    """Compares JSON values: `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)


def _holds(given: Any, wanted: Any) -> bool:
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return all(key in given and _holds(given[key], wanted[key]) for key in wanted)
    return _is_same(given, wanted)


@lru_cache(maxsize=256)
def _pattern(pattern: str, ignore_case: bool) -> Any:
    return compiled(pattern, ignore_case=ignore_case)


def _decided(is_there: bool, negated: bool, there: str, absent: str) -> Evaluation:
    return Evaluation(float(is_there != negated), there if is_there else absent)


def _boolean(is_good: bool, good: str, bad: str) -> Evaluation:
    return Evaluation(float(is_good), good if is_good else bad)
