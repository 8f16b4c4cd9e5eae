"""Intervals against scipy's bootstrap, and where there is none."""

import numpy as np
import pytest
from scipy import stats

from specdec.analysis.bootstrap import divide, estimate, ratio_of_totals


def test_interval_agrees_with_scipy():
    draw = np.random.default_rng(3)
    numerator, denominator = draw.gamma(2, 10, 60), draw.gamma(5, 8, 60)
    ours = ratio_of_totals(numerator, denominator)
    theirs = stats.bootstrap(
        (numerator, denominator),
        lambda a, b, axis: a.sum(axis) / b.sum(axis),
        paired=True,
        vectorized=True,
        n_resamples=8000,
        method="percentile",
        rng=np.random.default_rng(4),
    ).confidence_interval
    assert ours.value == pytest.approx(numerator.sum() / denominator.sum())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=0.03)


def test_interval_holds_the_truth_as_often_as_it_says():
    draw = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        lengths = draw.integers(10, 60, 40)
        accepted = draw.binomial(lengths, 0.6)
        interval = ratio_of_totals(accepted, lengths)
        hits += interval.low <= 0.6 <= interval.high
    assert 0.90 <= hits / 300 <= 0.99


def test_same_data_same_interval():
    values = np.arange(1.0, 9.0), np.full(8, 2.0)
    assert ratio_of_totals(*values) == ratio_of_totals(*values)
    assert ratio_of_totals(*values) != ratio_of_totals(*values, seed=1)


def test_one_example_has_no_interval():
    alone = ratio_of_totals([3.0], [4.0])
    assert alone.value == 0.75
    assert np.isnan([alone.low, alone.high]).all()


def test_nothing_to_divide_by():
    empty = ratio_of_totals([0.0, 0.0], [0.0, 0.0])
    assert np.isnan([empty.value, empty.low, empty.high]).all()
    rare = ratio_of_totals([0.0, 0.0, 1.0], [0.0, 0.0, 2.0])
    assert (rare.value, rare.low, rare.high) == (0.5, 0.5, 0.5)
    assert np.isnan(divide(1.0, 0.0))


def test_no_examples_is_refused():
    with pytest.raises(ValueError, match="at least one example"):
        estimate(np.zeros((0, 2)), lambda totals: totals[..., 0])
