"""Scores how much a text looks like an attempt to turn a model against its operator, by a table of rules."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import re2

from gateway.guardrails.detectors.characters import encoded, plain
from gateway.guardrails.detectors.injection_rules import RULES, THRESHOLD, Rule
from gateway.guardrails.detectors.invisible import hides_text, is_disguised, readings
from gateway.guardrails.detectors.matching import PatternSet, options
from gateway.guardrails.detectors.off_topic_requests import has_off_topic_request
from gateway.guardrails.detectors.reading import as_written
from gateway.guardrails.detectors.spelling import new_sentences, respellings, undone


class Scored(NamedTuple):
    """The injection score, from 0 to 1, and the names of the matching rules in the order of the table."""

    score: float
    rules: tuple[str, ...]

    @property
    def is_injection(self) -> bool:
        return self.score >= THRESHOLD


_CLEAN = Scored(0.0, ())
_OFF_TOPIC = "foreign_request"
_OFF_TOPIC_WEIGHT = 0.5
_HIDDEN = "hidden_text"
_HIDDEN_WEIGHT = 0.6

_HIMSELF = re2.compile(
    r"(?i)(?:n['\x{2019}]?t|\b(?:not|never|i|we|they|he|she|people|who|why|how to|when to"
    r"|easily|often|sometimes|always))\s(?:\w+\s)?$"
)
_LOOK_BACK = 24


_TRUSTED = [rule for rule in RULES if not rule.untrusted]
_UNTRUSTED = [rule for rule in RULES if rule.untrusted]


class _Compiled(NamedTuple):
    trusted: PatternSet
    untrusted: PatternSet
    guarded: dict[Rule, Any]


@cache
def _compiled() -> _Compiled:
    """The first call takes a fifth of a second of CPU, which a process without checks for injections saves."""
    return _Compiled(
        PatternSet([rule.pattern for rule in _TRUSTED]),
        PatternSet([rule.pattern for rule in _UNTRUSTED]),
        {rule: re2.compile(rule.pattern, options()) for rule in RULES if rule.guarded},
    )


def compile_rules() -> None:
    _compiled()


def injection_score(text: str, *, untrusted: bool) -> Scored:
    """`untrusted`: the text stands in a document or a tool's result, which should contain no instructions."""
    written = undone(text)
    words = plain(written)
    scores = [_scored(words, [words], untrusted=untrusted)]
    if others := respellings(words):
        scores.append(_scored(new_sentences(words, others), others, untrusted=untrusted))
    if is_disguised(written, encoded(written)):
        # A text may hide the same words many times, which are scored once.
        different = dict.fromkeys(plain(reading.text) for reading in readings(as_written(written)))
        scores += [_scored(hidden, [hidden], untrusted=untrusted) for hidden in different]
        if hides_text(written):
            scores.append(Scored(_HIDDEN_WEIGHT, (_HIDDEN,)))
    return max(scores, key=lambda one: one.score)


def _scored(text: str, documents: Iterable[str], *, untrusted: bool) -> Scored:
    data = encoded(text)
    compiled = _compiled()
    matching = [_TRUSTED[index] for index in compiled.trusted.matching(data)]
    if untrusted:
        matching += [_UNTRUSTED[index] for index in compiled.untrusted.matching(data)]
    found = {rule.name: rule.weight for rule in matching if _gives_orders(rule, data)}
    if untrusted and any(map(has_off_topic_request, documents)):
        found[_OFF_TOPIC] = _OFF_TOPIC_WEIGHT
    if not found:
        return _CLEAN
    return Scored(min(1.0, round(sum(found.values()), 3)), tuple(found))


def _gives_orders(rule: Rule, data: bytes) -> bool:
    """False if every match describes the writer or a third person instead of ordering the model."""
    pattern = _compiled().guarded.get(rule)
    return pattern is None or any(
        not _HIMSELF.search(data[max(0, match.start() - _LOOK_BACK) : match.start()])
        for match in pattern.finditer(data)
    )
