"""Measures the detectors on labelled texts: counts in, rates out.

A line of such a file has `id`, `text`, `label` (1: should be detected) and `kind`. Lines with personal data name it in
`entities` (`type`, `start`, `end` in characters) or, for test vectors of one recogniser, in `entity_type` and
`expected_matches`.

A hash of the text splits the texts into two parts: rules are written with one part and evaluated on the other, which
the authors of rules do not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from analytics.agreement import wilson
from gateway.guardrails.detectors.characters import encoded
from gateway.guardrails.detectors.injection import injection_score
from gateway.guardrails.detectors.pii import PiiEntity, PiiKind, find_pii

# These kinds of texts are about personal data; all others are about injections.
_PERSONAL = frozenset(
    {"pii_identifier", "pii_person_name", "no_pii_template", "vector_valid", "vector_invalid", "benign_prompt"}
)
# Kinds with this suffix are documents or results of tools, not a user's own message.
_UNTRUSTED_SUFFIX = "_document"
# The labels' names of the detected kinds of personal data. Names, addresses and other countries' identifiers are not
# detected.
_TYPES = {
    "EMAIL_ADDRESS": PiiKind.EMAIL,
    "PHONE_NUMBER": PiiKind.PHONE,
    "CREDIT_CARD": PiiKind.CARD,
    "IBAN_CODE": PiiKind.IBAN,
    "US_SSN": PiiKind.US_SSN,
    "US_ITIN": PiiKind.US_ITIN,
    "IP_ADDRESS": PiiKind.IP,
    "CRYPTO": PiiKind.CRYPTO,
}


class Part(StrEnum):
    """Authors of rules never read the texts of `JUDGING`."""

    WRITING = "writing"
    JUDGING = "judging"


class Entity(msgspec.Struct, frozen=True):
    type: str
    start: int
    end: int


class Line(msgspec.Struct, frozen=True):
    text: str
    label: int
    kind: str
    id: str = ""
    entities: tuple[Entity, ...] = ()
    entity_type: str = ""
    expected_matches: int = 0

    @property
    def is_personal(self) -> bool:
        return self.kind in _PERSONAL

    @property
    def is_untrusted(self) -> bool:
        return self.kind.endswith(_UNTRUSTED_SUFFIX)

    @property
    def part(self) -> Part:
        """The part follows from the text alone, so that a text in two data sets is in the same part."""
        is_odd = hashlib.sha256(encoded(self.text.strip())).digest()[-1] % 2
        return Part.JUDGING if is_odd else Part.WRITING


@dataclass
class KindTally:
    """The rate is the recall for label 1 and the false-positive rate for label 0."""

    label: int
    texts: int = 0
    detected: int = 0

    @property
    def rate(self) -> float:
        return self.detected / self.texts if self.texts else 0.0


@dataclass
class EntityTally:
    """An entity is found if a detection of its kind overlaps it."""

    found: int = 0
    missed: int = 0
    wrong: int = 0

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0


@dataclass
class Evaluation:
    injections: dict[tuple[str, int], KindTally] = field(default_factory=dict)
    entities: dict[PiiKind, EntityTally] = field(default_factory=dict)
    # The ids of misclassified lines; lines of the evaluation part are left out, because authors of rules do not read
    # them.
    mistaken: list[str] = field(default_factory=list)

    @property
    def injection_recall(self) -> KindTally:
        return self._total(1)

    @property
    def injection_false_positives(self) -> KindTally:
        return self._total(0)

    def _total(self, label: int) -> KindTally:
        kinds = [tally for tally in self.injections.values() if tally.label == label]
        return KindTally(label, sum(tally.texts for tally in kinds), sum(tally.detected for tally in kinds))


def evaluate(lines: Iterable[Line]) -> Evaluation:
    evaluation = Evaluation()
    for line in lines:
        right = _judge_personal(line, evaluation) if line.is_personal else _judge_injection(line, evaluation)
        if not right and line.part is Part.WRITING:
            evaluation.mistaken.append(line.id)
    return evaluation


def _judge_injection(line: Line, evaluation: Evaluation) -> bool:
    tally = evaluation.injections.setdefault((line.kind, line.label), KindTally(line.label))
    detected = injection_score(line.text, untrusted=line.is_untrusted).is_injection
    tally.texts += 1
    tally.detected += detected
    return detected == bool(line.label)


def _judge_personal(line: Line, evaluation: Evaluation) -> bool:
    found = find_pii(line.text)
    if line.entity_type:
        return _judge_vector(line, found, evaluation)
    labelled = [(_TYPES[entity.type], entity) for entity in line.entities if entity.type in _TYPES]
    right = True
    for kind, entity in labelled:
        tally = evaluation.entities.setdefault(kind, EntityTally())
        if any(other.kind is kind and _overlap(other, entity) for other in found):
            tally.found += 1
        else:
            tally.missed += 1
            right = False
    for other in found:
        if not any(other.kind is kind and _overlap(other, entity) for kind, entity in labelled):
            evaluation.entities.setdefault(other.kind, EntityTally()).wrong += 1
            right = False
    return right


def _judge_vector(line: Line, found: list[PiiEntity], evaluation: Evaluation) -> bool:
    """A test vector only makes a statement about its own type of entity."""
    kind = _TYPES.get(line.entity_type)
    if kind is None:
        return True
    tally = evaluation.entities.setdefault(kind, EntityTally())
    count = sum(entity.kind is kind for entity in found)
    tally.found += min(count, line.expected_matches)
    tally.missed += max(0, line.expected_matches - count)
    tally.wrong += max(0, count - line.expected_matches)
    return count == line.expected_matches


def confidence_interval(successes: int, trials: int) -> tuple[float, float]:
    """Returns the 95 % interval of a rate (Wilson 1927), given the successes and trials of a sample."""
    return wilson(successes, trials) if trials else (0.0, 1.0)


def _overlap(found: PiiEntity, labelled: Entity) -> bool:
    return found.start < labelled.end and labelled.start < found.end
