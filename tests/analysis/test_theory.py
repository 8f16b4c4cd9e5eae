"""The paper's formulas against its printed tables, golden values, simulation and exact enumeration."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from specdec.analysis import theory
from specdec.report import paper

chances = st.floats(0, 1)
gammas = st.integers(1, 40)
costs = st.floats(0, 2)


@pytest.mark.parametrize("row", list(paper.TABLE_1.itertuples(index=False)), ids=str)
def test_table_1_to_its_printed_digits(row):
    assert theory.operations(row.alpha, row.gamma, 0.0) == pytest.approx(row.operations, abs=0.005)
    assert theory.speedup(row.alpha, row.gamma, 0.0) == pytest.approx(row.speed, abs=0.005)


@pytest.mark.parametrize("row", list(paper.TABLE_4.itertuples(index=False)), ids=str)
def test_table_4_expected_speeds(row):
    # alpha and c are printed with two digits, hence the width.
    assert theory.speedup(row.alpha, row.gamma, row.c) == pytest.approx(row.exp, abs=0.07)


@pytest.mark.parametrize(("lenience", "printed"), [("1", 2.5), ("0.5", 3.1), ("0.3", 3.6)])
def test_table_5_speeds_exceed_what_theorem_3_8_reaches(lenience, printed):
    # With its own alpha, rounded up, and c = 0.015 no gamma reaches the T5-small speeds even before rounding.
    alpha = paper.TABLE_5.set_index("draft").loc["T5-small", lenience] + 0.005
    best = theory.speedup(alpha, theory.best_gamma(alpha, 0.015), 0.015)
    assert best < printed - 0.05
    assert printed < theory.oracle_speedup(alpha, 0.015)


@pytest.mark.parametrize(("alpha", "printed"), [(0.75, 3.3), (0.80, 3.9), (0.87, 4.9)])
def test_table_5_argmax_lenience_follows_theorem_3_8(alpha, printed):
    assert theory.speedup(alpha, 8, 0.015) == pytest.approx(printed, abs=0.05)


GOLDEN = [
    # alpha, gamma, c, then in exact fractions: tokens, speed, operations with c_hat = c
    (0.0, 3, 0.1, 1.000000, 0.769231, 4.300000),
    (0.31, 2, 0.05, 1.406100, 1.278273, 2.204680),
    (0.5, 1, 0.0, 1.500000, 1.500000, 1.333333),
    (0.6, 5, 0.02, 2.383360, 2.166691, 2.559412),
    (0.75, 7, 0.02, 3.599548, 3.157499, 2.261395),
    (0.9, 10, 0.015, 6.861894, 5.966864, 1.624916),
    (0.999, 4, 0.5, 4.990010, 1.663337, 1.402803),
    (1.0, 7, 0.02, 8.000000, 7.017544, 1.017500),
]


@pytest.mark.parametrize(("alpha", "gamma", "c", "tokens", "speed", "operations"), GOLDEN)
def test_golden_values(alpha, gamma, c, tokens, speed, operations):
    assert theory.tokens_per_round(alpha, gamma) == pytest.approx(tokens, abs=5e-7)
    assert theory.speedup(alpha, gamma, c) == pytest.approx(speed, abs=5e-7)
    assert theory.operations(alpha, gamma, c) == pytest.approx(operations, abs=5e-7)


@pytest.mark.parametrize(("alpha", "gamma"), [(0.3, 2), (0.75, 7), (0.95, 20)])
def test_equation_1_against_simulation(alpha, gamma):
    draws = np.random.default_rng(0).random((100_000, gamma)) < alpha
    emitted = np.cumprod(draws, axis=1).sum(axis=1) + 1
    error = emitted.std() / math.sqrt(len(emitted))
    assert abs(emitted.mean() - theory.tokens_per_round(alpha, gamma)) < 4 * error


@given(gammas)
def test_limits_are_exact(gamma):
    assert theory.tokens_per_round(1, gamma) == gamma + 1
    assert theory.tokens_per_round(0, gamma) == 1
    assert theory.tokens_per_round(1 - 1e-15, gamma) == pytest.approx(gamma + 1, rel=1e-12)
    assert theory.oracle_tokens_per_round(1) == math.inf


@given(chances, gammas)
def test_equation_1_is_the_sum_of_powers(alpha, gamma):
    assert theory.tokens_per_round(alpha, gamma) == pytest.approx(sum(alpha**i for i in range(gamma + 1)))


@given(chances, costs)
def test_corollary_3_9(alpha, c):
    assume(abs(alpha - c) > 1e-9)
    assert theory.improves(alpha, c) == (theory.best_gamma(alpha, c) > 0)
    assert theory.least_improvement(alpha, c) == pytest.approx(theory.speedup(alpha, 1, c))
    if theory.improves(alpha, c):
        best = theory.speedup(alpha, theory.best_gamma(alpha, c), c)
        assert best >= theory.least_improvement(alpha, c) - 1e-12


@given(chances, gammas, costs)
def test_no_fixed_gamma_beats_the_oracle(alpha, gamma, c):
    # Where alpha < c the oracle still drafts, which then costs more than it saves.
    assume(alpha >= c and (alpha, c) != (1, 0))
    assert theory.speedup(alpha, gamma, c) <= theory.oracle_speedup(alpha, c) * (1 + 1e-12)


def test_oracle_gains_about_60_percent_at_most():
    alpha, c = np.meshgrid(np.linspace(0.3, 0.95, 66), [0.01, 0.02, 0.05, 0.1])
    gain = theory.oracle_speedup(alpha, c) / theory.speedup(alpha, theory.best_gamma(alpha, c, 100), c)
    assert 1.5 < gain.max() < 1.6


def test_best_gamma_is_the_argmax():
    assert theory.best_gamma(0.8, 0.05) == 8
    assert theory.best_gamma(0.75, 0.02) == 9
    assert theory.best_gamma(0.1, 0.2) == 0
    assert theory.best_gamma(0.8, 0.0, gamma_max=12) == 12
    # A target run over 4 or more positions that costs twice one position moves it down.
    assert theory.best_gamma(0.8, 0.05, 8, [1, 1, 2, 2, 2, 2, 2, 2]) == 2
    np.testing.assert_array_equal(theory.best_gamma([0.8, 0.1], 0.05), [8, 1])


def test_arrays_broadcast():
    speeds = theory.speedup(np.array([[0.5], [0.8]]), np.array([1, 3, 7]), 0.1)
    assert speeds.shape == (2, 3)
    assert speeds[1, 2] == theory.speedup(0.8, 7, 0.1)
    assert isinstance(theory.speedup(0.8, 7, 0.1), float)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.tokens_per_round(0.5, 0), "gamma"),
        (lambda: theory.tokens_per_round(0.5, 2.5), "gamma"),
        (lambda: theory.tokens_per_round(1.2, 3), "alpha"),
        (lambda: theory.tokens_per_round([0.5, -0.1], 3), "alpha"),
        (lambda: theory.tokens_per_round(math.nan, 3), "alpha"),
        (lambda: theory.speedup(0.5, 3, -0.1), "c:"),
        (lambda: theory.speedup(0.5, 3, math.inf), "c:"),
        (lambda: theory.speedup(0.5, 3, 0.1, 0.0), "verification"),
        (lambda: theory.round_speedup(math.nan, 3, 0.1), "tokens"),
        (lambda: theory.operations(0.5, 3, -1), "c_hat"),
        (lambda: theory.best_gamma(0.5, 0.1, 0), "gamma"),
        (lambda: theory.best_gamma(0.5, 0.1, 3, [1.0]), "verification"),
        (lambda: theory.lenient_alpha([0.5, 0.5], [0.5, 0.5], 1.5), "lenience"),
        (lambda: theory.lenient_alpha([0.5, 0.6], [0.5, 0.5], 1), "p: not a distribution"),
        (lambda: theory.lenient_alpha([0.5, 0.5], [1.5, -0.5], 1), "q: not a distribution"),
        (lambda: theory.expected_rounds([[0.5, 1.1]], 2), "acceptance"),
        (lambda: theory.expected_rounds([[]], 2), "paths"),
        (lambda: theory.expected_rounds([[0.5]], 0), "gamma"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


P, Q = [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]


@pytest.mark.parametrize(("lenience", "alpha"), [(1, 0.7), (0.8, 0.825), (0.6, 1.0), (0.1, 1.0), (0, 1.0)])
def test_lenient_alpha(lenience, alpha):
    assert theory.lenient_alpha(P, Q, lenience) == pytest.approx(alpha, abs=1e-12)


def test_lenient_alpha_where_p_is_zero():
    assert theory.lenient_alpha([1.0, 0.0], [0.25, 0.75], [1, 0.5, 1e-300, 0]).tolist() == [
        0.25,
        0.25,
        0.25,
        1,
    ]


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), st.lists(chances, min_size=2, max_size=6))
def test_less_lenience_never_accepts_more(weights, leniences):
    p = np.array(weights) / sum(weights)
    alphas = theory.lenient_alpha(p, Q, sorted(leniences))
    assert all(low >= high - 1e-12 for low, high in pairwise(alphas))
    assert theory.lenient_alpha(p, Q, 1) == pytest.approx(1 - np.abs(p - Q).sum() / 2)


def law(prefix: tuple, salt: float) -> np.ndarray:
    """A distribution over 3 tokens that depends on the whole prefix. Token 0 ends the text."""
    seed = sum((token + 1) * 7**i for i, token in enumerate(prefix)) + salt
    weights = np.abs(np.sin(seed * np.array([1.3, 2.1, 3.7]))) + 0.05
    return weights / weights.sum()


def round_outcomes(prefix: tuple, drafts: int):
    """Every (probability, emitted tokens) of a round, straight from steps 1 to 5 of Algorithm 1."""
    p, q = law(prefix, 0.1), law(prefix, 0.5)
    for x in range(3):
        if drafts == 0:
            yield p[x], (x,)
            continue
        yield max(p[x] - q[x], 0), (x,)  # rejected, and x is the correction
        if x == 0:
            yield min(p[x], q[x]), (x,)
            continue
        for weight, rest in round_outcomes((*prefix, x), drafts - 1):
            yield min(p[x], q[x]) * weight, (x, *rest)


def true_rounds(prefix: tuple, gamma: int, cap: int) -> float:
    if len(prefix) == cap or (prefix and prefix[-1] == 0):
        return 0.0
    outcomes = round_outcomes(prefix, min(gamma, cap - len(prefix) - 1))
    return 1 + sum(w * true_rounds(prefix + emitted, gamma, cap) for w, emitted in outcomes if w > 0)


def texts(prefix: tuple, cap: int):
    """Every text: its probability under the target and, a position, min(1, q / p) of its token and beta."""
    if len(prefix) == cap or (prefix and prefix[-1] == 0):
        yield 1.0, [], []
        return
    p, q = law(prefix, 0.1), law(prefix, 0.5)
    for x in range(3):
        for weight, accepts, betas in texts((*prefix, x), cap):
            beta = np.minimum(p, q).sum()
            yield p[x] * weight, [min(1, q[x] / p[x]), *accepts], [beta, *betas]


@pytest.mark.parametrize("gamma", [1, 2, 3, 7])
def test_expected_rounds_are_exact_for_prefix_dependent_laws(gamma):
    weights, accepts, betas = zip(*texts((), 5), strict=True)
    assert sum(weights) == pytest.approx(1)
    exact = true_rounds((), gamma, 5)
    assert weights @ theory.expected_rounds(accepts, gamma) == pytest.approx(exact, abs=1e-12)
    # beta, the chance before the token is known, is not enough: which token comes decides where the text
    # goes on.
    assert weights @ theory.expected_rounds(betas, gamma) != pytest.approx(exact, abs=1e-3)


@settings(max_examples=25)
@given(chances, gammas)
def test_equal_chances_and_long_texts_tend_to_equation_1(alpha, gamma):
    rounds = theory.expected_rounds([[alpha] * 1500], gamma)[0]
    assert 1500 / rounds == pytest.approx(theory.tokens_per_round(alpha, gamma), rel=0.04)


@given(st.lists(st.lists(chances, min_size=1, max_size=9), min_size=1, max_size=4), gammas)
def test_texts_of_unequal_length_do_not_touch_each_other(paths, gamma):
    together = theory.expected_rounds(paths, gamma)
    alone = [theory.expected_rounds([path], gamma)[0] for path in paths]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)
    assert all(
        math.ceil(len(path) / (gamma + 1)) <= n + 1e-9 for path, n in zip(paths, together, strict=True)
    )


def test_certain_acceptance_and_rejection():
    assert theory.expected_rounds([[0.0] * 9, [1.0] * 9, [1.0] * 8, [0.3]], 3).tolist() == [9, 3, 2, 1]
