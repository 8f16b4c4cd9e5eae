"""Intervals by bootstrap over examples, for every figure that is a function of totals over examples.

Ratios of totals, means, differences of ratios and corpus BLEU all are. Resampling examples with replacement
only changes how often each example enters the totals, so one matrix product serves them all, and arms that
decoded the same examples stay paired.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A measured figure and its percentile interval at ``LEVEL``; the ends are NaN where there is none."""

    value: float
    low: float
    high: float


def estimate(
    totals: ArrayLike,
    statistic: Callable[[np.ndarray], np.ndarray],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """``statistic`` of the totals over all examples, with its interval.

    totals: [examples, k], what each example adds. statistic: maps totals [..., k] to [...]. A single
    example has no interval. Resamples whose statistic is undefined (NaN) are left out. Raises
    ``ValueError`` without examples.
    """
    totals = np.asarray(totals, dtype=np.float64)
    if totals.ndim != 2 or len(totals) == 0:
        raise ValueError(f"totals of shape {totals.shape}: give [examples, k] with at least one example")
    value = float(statistic(totals.sum(axis=0)))
    examples = len(totals)
    if examples == 1:
        return Estimate(value, np.nan, np.nan)
    draws = np.asarray(statistic(_times(examples, resamples, seed) @ totals), dtype=np.float64)
    draws = draws[~np.isnan(draws)]
    if draws.size == 0:
        return Estimate(value, np.nan, np.nan)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Estimate(value, float(low), float(high))


@lru_cache(maxsize=8)
def _times(examples: int, resamples: int, seed: int) -> np.ndarray:
    """How often each resample holds each example, [resamples, examples]."""
    equal = np.full(examples, 1 / examples)
    return np.random.default_rng(seed).multinomial(examples, equal, size=resamples).astype(np.float64)


def ratio_of_totals(numerator: ArrayLike, denominator: ArrayLike, seed: int = 0) -> Estimate:
    """Sum of ``numerator`` over sum of ``denominator``, an entry an example; NaN where that is 0."""
    return estimate(
        np.stack([numerator, denominator], axis=1),
        lambda totals: divide(totals[..., 0], totals[..., 1]),
        seed=seed,
    )


def divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Elementwise quotient, NaN (not infinity) where the denominator is 0."""
    denominator = np.asarray(denominator, dtype=np.float64)
    return np.divide(numerator, np.where(denominator == 0, np.nan, denominator))
