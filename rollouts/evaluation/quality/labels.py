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
from rollouts.evaluation.quality.values import labelled

GOOD_FROM = 0.5

_BEYOND_CHANCE, _MIN_OF_EACH = 3.3, 5
"""The correlation in deviations of none, and the good and the bad labels, that chance reaches in fewer than one of
twenty rollouts, however often one looks."""
_MIN_CONTRADICTED, _MIN_CONTRADICTED_SHARE = 3, 0.03
"""The labels that differ from the judge's verdict without which they repeat it, and their share without which a version
does not pass by them: a judge whom people contradict so rarely is excellent, or copied."""
_HUNDREDTHS = 100


@dataclass(frozen=True, slots=True)
class LabelInformation:
    """`good` and `bad` count the labels by their scores in hundredths. `agreed` is whether second opinions agree with
    the first ones beyond chance."""

    good: Mapping[int, int] = field(default_factory=dict)
    bad: Mapping[int, int] = field(default_factory=dict)
    agreed: bool = False

    def with_tasks(self, tasks: Iterable[Task]) -> LabelInformation:
        good, bad = Counter(self.good), Counter(self.bad)
        for score, label in labelled(tasks):
            (good if label >= GOOD_FROM else bad)[round(score * _HUNDREDTHS)] += 1
        return replace(self, good=dict(sorted(good.items())), bad=dict(sorted(bad.items())))

    @property
    def informs(self) -> bool:
        number = sum(self.good.values()) + sum(self.bad.values())
        contradicts = self._contradicted >= max(_MIN_CONTRADICTED, _MIN_CONTRADICTED_SHARE * number)
        return self.agreed or (contradicts and self._goes_with_scores)

    @property
    def repeats_judge(self) -> bool:
        return not self.agreed and self._contradicted < _MIN_CONTRADICTED

    @property
    def _contradicted(self) -> int:
        """Returns how many labels differ from the judge's verdict, at the limit between good and bad scores at which
        Cohen's kappa of both is the highest."""
        good, bad = sum(self.good.values()), sum(self.bad.values())
        found = [(0.0, 0)]
        for limit in (*self.good, *self.bad):
            low_good = sum([count for score, count in self.good.items() if score < limit])
            low_bad = sum([count for score, count in self.bad.items() if score < limit])
            differ, low = low_good + bad - low_bad, low_good + low_bad
            by_chance = (good * low + bad * (good + bad - low)) / (good + bad)
            found.append((1 - differ / by_chance if by_chance else 0.0, differ))
        return max(found)[1]

    @property
    def _goes_with_scores(self) -> bool:
        good, bad = sum(self.good.values()), sum(self.bad.values())
        if min(good, bad) < _MIN_OF_EACH:
            return False
        number, all_scores = good + bad, [*self.good.items(), *self.bad.items()]
        mean = sum([score * count for score, count in all_scores]) / number
        variance = sum([count * (score - mean) ** 2 for score, count in all_scores]) / number
        covariance = sum([count * (score - mean) for score, count in self.good.items()]) / number
        deviation = math.sqrt(variance * (good / number) * (bad / number) / number)
        return covariance > _BEYOND_CHANCE * deviation
