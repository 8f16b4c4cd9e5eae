"""The two alphas on cases with a known answer."""

import numpy as np
import pandas as pd
import pytest

from specdec.analysis import alpha, theory


def speculative(rounds_by_id: dict[str, list[tuple[int, int, int]]]) -> pd.DataFrame:
    names = ("n_drafted", "n_accepted", "emitted")
    rounds = [[dict(zip(names, each, strict=True)) for each in rounds] for rounds in rounds_by_id.values()]
    return pd.DataFrame({"id": list(rounds_by_id), "rounds": rounds})


def test_the_bonus_token_is_no_draft():
    """Field case 20: i.i.d. 0.75, gamma 7 -> alpha 0.75, accepted / drafted 0.371, 3.60 tokens a round."""
    draws = np.random.default_rng(1).random((20_000, 7)) < 0.75
    accepted = np.cumprod(draws, axis=1).sum(axis=1)
    by_id = {f"e{i}": [(7, n, n + 1) for n in accepted[i::40]] for i in range(40)}
    rounds = alpha.flat_rounds(speculative(by_id))
    counts = alpha.counts_alpha(rounds)
    assert counts.value == pytest.approx(0.75, abs=0.005)
    assert counts.low < 0.75 < counts.high
    assert rounds["n_accepted"].sum() / rounds["n_drafted"].sum() == pytest.approx(0.371, abs=0.003)
    assert alpha.tokens_per_round(rounds).value == pytest.approx(3.60, abs=0.03)
    assert theory.tokens_per_round(0.75, 7) == pytest.approx(3.60, abs=0.001)


@pytest.mark.parametrize(
    ("round_", "tested"),
    [
        ((3, 0, 1), 1),  # the first draft was rejected; the other two were never tested
        ((3, 2, 3), 3),
        ((3, 3, 4), 3),  # all accepted; the fourth token is the target's own
        ((2, 2, 2), 2),  # an accepted end token: nothing follows it
        ((0, 0, 1), 0),  # one token left, or a copy draft without a match
    ],
)
def test_testing_stops_at_the_first_rejection(round_, tested):
    assert alpha.flat_rounds(speculative({"a": [round_]}))["tested"].tolist() == [tested]


def test_counts_alpha_is_undefined_where_nothing_was_tested():
    assert np.isnan(
        alpha.counts_alpha(alpha.flat_rounds(speculative({"a": [(0, 0, 1)], "b": [(0, 0, 1)]}))).value
    )


def test_distribution_of_accepted_drafts():
    rounds = alpha.flat_rounds(speculative({"a": [(3, 0, 1), (3, 2, 3)], "b": [(3, 0, 1)]}))
    assert alpha.accepted_counts(rounds, 3) == [2, 0, 1, 0]


SCORED = pd.DataFrame(
    {
        "id": ["a", "a", "b"],
        "tokens": [2, 2, 4],
        "beta_sum": [1.0, 2.0, 2.0],
        "betas": [[0.5, 0.5], [1.0, 1.0], [0.5, 0.5, 0.5, 0.5]],
    }
)


def test_overlap_alpha_weighs_by_tokens_and_resamples_prompts():
    found = alpha.overlap_alpha(SCORED)
    assert found.value == 0.625
    # Only prompts a (0.75) and b (0.5) can be drawn, both samples of a at once.
    assert (found.low, found.high) == (0.5, 0.75)


def test_path_of_known_chances():
    # One draft a round. Two left: 1 + 1/2; four left, all 1/2: R = 1 + R(3)/2 + R(2)/2 with R(2) = 1.5,
    # R(3) = 2.25.
    rounds = 1.5 + 1.0 + (1 + 2.25 / 2 + 1.5 / 2)
    assert alpha.path_tokens_per_round(SCORED, 1).value == pytest.approx(8 / rounds)


def test_the_tokens_own_chances_come_before_their_means():
    certain = SCORED.assign(accepts=SCORED["betas"].map(np.ones_like))
    assert alpha.path_tokens_per_round(certain, 1).value == pytest.approx(8 / 4)


def test_rounding_above_one_is_cut_and_more_is_refused():
    over = pd.DataFrame({"id": ["a"], "tokens": [2], "beta_sum": [2.00001], "betas": [[1.00001, 1.0]]})
    assert alpha.overlap_alpha(over).value == 1.0
    assert alpha.path_tokens_per_round(over, 3).value == 2.0
    with pytest.raises(ValueError, match="acceptance"):
        alpha.path_tokens_per_round(over.assign(betas=[[1.2, 1.0]]), 3)
