"""Conversion of arrays of requests into the counts of minutes that an evaluation reads."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rollouts.evaluation.statistics.grid import LOG_RATIO, Histogram

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def bins_of(values: Floats) -> Integers:
    bins: Integers = 1 + np.floor(np.log(np.maximum(values, 1.0)) / LOG_RATIO + 0.5).astype(np.int64)
    return bins


def counts(cells: Integers, number: int) -> list[int]:
    found: list[int] = np.bincount(cells, minlength=number).tolist()
    return found


def histograms(cells: Integers, bins: Integers, number: int) -> list[Histogram]:
    if not len(bins):
        return [{} for _ in range(number)]
    first, last = int(bins.min()), int(bins.max())
    width = last - first + 1
    dense = np.bincount(cells * width + (bins - first), minlength=number * width)
    filled = np.flatnonzero(dense)
    ends = np.searchsorted(filled, np.arange(number + 1) * width).tolist()
    keys, values = (filled % width + first).tolist(), dense[filled].tolist()
    return [dict(zip(keys[begin:end], values[begin:end], strict=True)) for begin, end in pairwise(ends)]


def sums_before(group: Integers, values: Floats) -> Floats:
    order = np.argsort(group, kind="stable")
    if not len(order):
        return np.zeros(0)
    sorted_group, total = group[order], np.cumsum(values[order])
    begins = np.flatnonzero(np.concatenate(([True], sorted_group[1:] != sorted_group[:-1])))
    before_group = (total - values[order])[begins]
    found = np.empty(len(order))
    found[order] = total - values[order] - np.repeat(before_group, np.diff(np.concatenate((begins, [len(order)]))))
    return found


def sums(cells: Integers, values: Floats, number: int) -> list[int]:
    total: list[int] = np.rint(np.bincount(cells, weights=values, minlength=number)).astype(np.int64).tolist()
    return total


def dollars(units: int) -> Decimal:
    return Decimal(units).scaleb(-10)
