"""Speed is a ratio of totals over the same examples."""

import numpy as np
import pandas as pd
import pytest

from specdec.analysis import speed


def records(rows) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["id", "arm", "repeat", "n", "seconds", "prefill_s"])
    return frame.assign(tokens=frame["n"].map(lambda n: list(range(n))))


CASE_21 = records(
    [
        ("a", "baseline", 0, 10, 2.0, 0.5),
        ("a", "speculative", 0, 10, 1.0, 0.5),
        ("b", "baseline", 0, 100, 20.0, 0.5),
        ("b", "speculative", 0, 100, 20.0, 0.5),
    ]
)


def test_ratio_of_totals_not_mean_of_ratios():
    """Field case 21: 1.048, where the mean of ratios says 1.5."""
    assert speed.speedup(CASE_21).value == pytest.approx(22 / 21)
    assert speed.speedup(CASE_21).value == pytest.approx(1.048, abs=5e-4)
    assert (speed.speedup(CASE_21).low, speed.speedup(CASE_21).high) == (1.0, 2.0)


def test_prefill_left_out():
    assert speed.speedup(CASE_21, prefill=False).value == pytest.approx(21 / 20)


def test_arms_of_different_length_compare_seconds_a_token():
    frame = records([("a", "baseline", 0, 10, 1.0, 0.1), ("a", "speculative", 0, 20, 1.0, 0.1)])
    assert speed.speedup(frame).value == pytest.approx(2.0)


def test_pairing_takes_out_what_examples_share():
    draw = np.random.default_rng(0)
    rows = []
    for i, slow in enumerate(draw.uniform(1, 50, 40)):
        rows += [(str(i), "baseline", 0, 10, 2 * slow, 0.0), (str(i), "speculative", 0, 10, slow, 0.0)]
    found = speed.speedup(records(rows))
    assert (found.low, found.value, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_repeats_add_up():
    twice = pd.concat([CASE_21, CASE_21.assign(repeat=1)], ignore_index=True)
    assert speed.speedup(twice) == speed.speedup(CASE_21)


def test_ms_per_token():
    assert speed.ms_per_token(CASE_21, "baseline") == pytest.approx(200.0)


def test_identical_examples_are_counted_by_pair():
    assert speed.identical_examples(CASE_21.sample(frac=1, random_state=1)) == 2
    tokens = CASE_21["tokens"].tolist()
    other = CASE_21.assign(tokens=[tokens[0], [*tokens[1][:-1], 77], *tokens[2:]])
    assert speed.identical_examples(other) == 1
