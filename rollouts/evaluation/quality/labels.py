"""Whether people's labels carry information: beyond chance, and beyond the judge that they correct.

Labels of somebody who always presses the same key, or guesses, do not go with the scores. Labels of somebody who
repeats the judge do, but leave its tastes as they are: labels and scores together then know what the judge knows. A
second person who agrees beyond chance settles both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rollouts.evaluation.quality.counts import Task
from rollouts.evaluation.quality.values import MIN_LABELS, LabelSums, labelled

GOOD_FROM = 0.5

_BEYOND_CHANCE = 3.0
"""The deviations of a sum without a trend that chance reaches in fewer than one of twenty rollouts, however often one
looks."""
_MIN_CONTRADICTED, _MIN_CONTRADICTED_SHARE = 3, 0.025
"""The labels that differ from the judge's verdict without which they repeat it, and their share without which a version
does not pass by them: a judge whom people contradict so rarely is excellent, or copied."""
_HUNDREDTHS = 100


@dataclass(frozen=True, slots=True)
class LabelInformation:
    """`products` sums, over labels and scores, the product of both deviations from the means of earlier blocks, and
    `squares` the squares of these products. `good` and `bad` count the labels by their scores in hundredths.

    `agreed` is whether second opinions agree with the first ones beyond chance.
    """

    products: float = 0.0
    squares: float = 0.0
    good: Mapping[int, int] = field(default_factory=dict)
    bad: Mapping[int, int] = field(default_factory=dict)
    agreed: bool = False

    def with_tasks(self, tasks: Iterable[Task], before: LabelSums) -> LabelInformation:
        pairs = labelled(tasks)
        if not pairs:
            return self
        products: list[float] = []
        if before.number >= MIN_LABELS:
            usual_score, usual_label = before.scores / before.number, before.labels / before.number
            products = [(score - usual_score) * (label - usual_label) for score, label in pairs]
        counts = [
            Counter(round(score * _HUNDREDTHS) for score, label in pairs if (label >= GOOD_FROM) is is_good)
            for is_good in (True, False)
        ]
        good, bad = (
            dict(sorted((Counter(known) + more).items()))
            for known, more in zip((self.good, self.bad), counts, strict=True)
        )
        return replace(
            self,
            products=self.products + math.fsum(products),
            squares=self.squares + math.fsum([product * product for product in products]),
            good=good,
            bad=bad,
        )

    @property
    def informs(self) -> bool:
        contradicted, number = self._contradicted, sum(self.good.values()) + sum(self.bad.values())
        enough = contradicted >= max(_MIN_CONTRADICTED, _MIN_CONTRADICTED_SHARE * number)
        goes_with_scores = self.products > _BEYOND_CHANCE * math.sqrt(self.squares)
        return self.agreed or (enough and goes_with_scores)

    @property
    def repeats_judge(self) -> bool:
        return not self.agreed and self._contradicted < _MIN_CONTRADICTED

    @property
    def _contradicted(self) -> int:
        """Returns how many labels differ from what a limit of the score says, at the limit with the fewest."""
        differ = (
            sum([count for score, count in self.good.items() if score < limit])
            + sum([count for score, count in self.bad.items() if score >= limit])
            for limit in (*self.good, *self.bad, math.inf)
        )
        return min(differ)
