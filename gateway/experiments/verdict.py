"""The rule by which an experiment over scored pairs ends (docs/experiments.md, "Verdict"). Arithmetic only.

Each evaluator gives one sequence of pairs, in the order of the items. The target is *worse* if the mean of the
evaluators' e-values reaches `WORSE`. It *passed* if each required evaluator's evidence of not being worse by the margin
reaches `NOT_WORSE`, few scores are missing, and no evaluator that must pass fails on an item that the baseline passed.
Otherwise it is *undecided*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rollouts.evaluation.pairs import Pair, PairProcess
from rollouts.evaluation.statistics.ebh import e_bh
from rollouts.evaluation.statistics.evidence import log_mean

WORSE = 100.0
"""The e-value at which a target is worse: of targets that are not, at most one in a hundred reaches it."""
NOT_WORSE = 20.0
"""The e-value at which a target is not worse by the margin: of targets that are, at most one in twenty reaches it."""
MOST_MISSING = 0.2
"""The share of pairs without both scores above which nothing passes."""
TAG_LEVEL = 0.05
LOOK_EVERY = 20
"""An experiment looks at its verdict after so many further items."""


class Verdict(StrEnum):
    PASSED = "passed"
    WORSE = "worse"
    UNDECIDED = "undecided"


def is_final(verdict: Verdict, rules: Iterable[Rule]) -> bool:
    """Whether to stop waiting for items: a worse target stays worse, and one that passed is done unless an evaluator
    must pass on every item."""
    if verdict is Verdict.PASSED:
        return not any(rule.must_pass for rule in rules)
    return verdict is Verdict.WORSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What an evaluator's scores decide. `required`: it must pass for the experiment to pass. `must_pass`: the target
    may not fail (score below `good_from`) where the baseline does not; with `min_rate` it may, if that share of its
    answers is good."""

    required: bool = True
    must_pass: bool = False
    min_rate: float | None = None
    good_from: float = 0.5


@dataclass(slots=True)
class Course:
    rule: Rule
    process: PairProcess
    good: int = 0
    newly_failed: list[int] = field(default_factory=list)
    """The positions of the items that the baseline passed and the target failed."""

    def add(self, position: int, pair: Pair) -> None:
        self.process.add(pair)
        is_good = pair.target is not None and pair.target >= self.rule.good_from
        self.good += is_good
        if not is_good and pair.baseline is not None and pair.baseline >= self.rule.good_from:
            self.newly_failed.append(position)

    @property
    def good_rate(self) -> float | None:
        """The share of all items on which the target is good; a missing score does not count as good."""
        return self.good / self.process.pairs if self.process.pairs else None

    @property
    def passes(self) -> bool:
        return self.has_scores and self.is_safe and (not self.rule.required or self.is_not_worse)

    @property
    def has_scores(self) -> bool:
        """Whether few enough pairs lack a score for the target to pass."""
        return self.process.pairs > 0 and self.process.missing_share <= MOST_MISSING

    @property
    def is_not_worse(self) -> bool:
        return self.process.peak_not_worse >= math.log(NOT_WORSE)

    @property
    def is_safe(self) -> bool:
        """Whether the target failed on no item on which it must pass."""
        if not self.rule.must_pass:
            return True
        if self.rule.min_rate is None:
            return not self.newly_failed
        return self.good >= self.rule.min_rate * self.process.pairs


@dataclass(slots=True)
class Courses:
    rules: Mapping[str, Rule]
    margin: float
    by_evaluator: dict[str, Course] = field(default_factory=dict)
    by_tag: dict[tuple[str, str], PairProcess] = field(default_factory=dict)
    peak_worse: float = 0.0
    """The logarithm of the highest mean of the evaluators' e-values for *worse*."""

    def __post_init__(self) -> None:
        self.by_evaluator = {name: Course(rule, PairProcess(self.margin)) for name, rule in self.rules.items()}

    def add(self, position: int, pairs: Mapping[str, Pair], tags: Sequence[str] = ()) -> None:
        """Takes one item's pairs, by evaluator. Items must come in order."""
        for name, course in self.by_evaluator.items():
            pair = pairs[name]
            course.add(position, pair)
            for tag in tags:
                self.by_tag.setdefault((name, tag), PairProcess(self.margin)).add(pair)
        logs = [course.process.log_worse for course in self.by_evaluator.values()]
        self.peak_worse = max(self.peak_worse, log_mean(logs) if logs else 0.0)

    def verdict(self) -> Verdict:
        if self.peak_worse >= math.log(WORSE):
            return Verdict.WORSE
        deciding = self.deciding
        if deciding and all(course.passes for course in deciding.values()):
            return Verdict.PASSED
        return Verdict.UNDECIDED

    @property
    def deciding(self) -> Mapping[str, Course]:
        return {
            name: course for name, course in self.by_evaluator.items() if course.rule.required or course.rule.must_pass
        }

    def may_stop(self) -> bool:
        return is_final(self.verdict(), self.rules.values())

    def worse_tags(self) -> list[tuple[str, str]]:
        """The evaluators and tags in which the target is worse, by e-BH: at most a twentieth of them is wrong on
        average."""
        keys = list(self.by_tag)
        logs = [self.by_tag[key].log_worse for key in keys]
        return [keys[place] for place in e_bh(logs, level=TAG_LEVEL, hypotheses=max(len(keys), 1))]
