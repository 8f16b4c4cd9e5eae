"""The output law of the production code, computed exactly and compared with the target's."""

import warnings

import numpy as np
import pytest
import torch

from specdec.decoding.drafts import CopyDraft
from specdec.decoding.engine import Limits, baseline, speculative
from specdec.sampling import SamplingParams, to_probs
from tests.decoding.worlds import TableModel, fixed, neural, outcomes, random_world

warnings.filterwarnings("ignore", "divide by zero")
P, Q = (0.5, 0.3, 0.2), (0.2, 0.5, 0.3)
NO_EOS = frozenset()


def target_law(probs_after, params, limits, prompt=(0,), width=3):
    return outcomes(
        lambda r: tuple(baseline(TableModel(probs_after, width), list(prompt), params, limits, r).tokens)
    )


def speculative_law(p, draft, gamma, params, limits, prompt=(0,), width=3):
    def run(randomness):
        out = speculative(TableModel(p, width), draft(), gamma, list(prompt), params, limits, randomness)
        return tuple(out.tokens)

    return outcomes(run)


def assert_same_law(law, expected, tolerance=1e-6):
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    assert law.keys() <= expected.keys() | {k for k, v in law.items() if v < tolerance}
    for key, weight in expected.items():
        assert law.get(key, 0.0) == pytest.approx(weight, abs=tolerance), key


def direct_law(probs_after, params, limits, prompt=(0,), width=3):
    """The target's law by multiplying its probabilities, without any decoding code."""
    law, open_ = {}, {(): 1.0}
    for _ in range(limits.max_new_tokens):
        grown = {}
        for tokens, weight in open_.items():
            with np.errstate(divide="ignore"):
                logits = torch.as_tensor(np.log(probs_after((*prompt, *tokens))))
            for x, p in enumerate(to_probs(logits, params).tolist()):
                if p > 0:
                    sequence = (*tokens, x)
                    (law if x in limits.eos_ids else grown)[sequence] = weight * p
        open_ = grown
    return law | open_


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gamma", [1, 2, 3, 4])
@pytest.mark.parametrize("eos", [NO_EOS, frozenset({2})], ids=["no end", "end token"])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(0.6),
        SamplingParams(top_k=2),
        SamplingParams(top_p=0.7),
        SamplingParams(0),
    ],
    ids=["T1", "T0.6", "k2", "p0.7", "T0"],
)
def test_speculative_output_follows_the_target(seed, gamma, eos, params):
    p, q, limits = random_world(seed), random_world(100 + seed), Limits(3, eos)
    expected = direct_law(p, params, limits)
    assert_same_law(target_law(p, params, limits), expected)
    assert_same_law(speculative_law(p, lambda: neural(q), gamma, params, limits), expected)


@pytest.mark.parametrize("gamma", [1, 3])
def test_copy_draft_is_lossless(gamma):
    limits = Limits(3, frozenset({2}))
    p, prompt = random_world(7), (0, 1, 0, 1, 0)
    law = speculative_law(p, lambda: CopyDraft(3), gamma, SamplingParams(), limits, prompt)
    assert_same_law(law, direct_law(p, SamplingParams(), limits, prompt))


def test_one_uniform_a_position():
    """Field case 9: sharing a uniform between positions would give a total variation of 0.14."""
    law = speculative_law(fixed(*P), lambda: neural(fixed(*Q)), 2, SamplingParams(), Limits(2, NO_EOS))
    assert_same_law(law, {(a, b): P[a] * P[b] for a in range(3) for b in range(3)})


def test_ratio_uses_the_distribution_that_was_sampled():
    """Field case 1."""
    p, q = fixed(0.6, 0.4), fixed(0.8, 0.2)
    law = speculative_law(p, lambda: neural(q, 2), 1, SamplingParams(), Limits(2, NO_EOS), width=2)
    first = sum(weight for tokens, weight in law.items() if tokens[0] == 0)
    assert first == pytest.approx(0.6, abs=1e-6)


def test_filters_apply_to_both():
    """Field case 2."""
    law = speculative_law(fixed(*P), lambda: neural(fixed(*Q)), 1, SamplingParams(top_k=2), Limits(2, NO_EOS))
    first = [sum(w for tokens, w in law.items() if tokens[0] == x) for x in range(3)]
    assert first == pytest.approx([0.625, 0.375, 0], abs=1e-6)


def test_greedy_compares_one_hots():
    """Field case 5: the draft proposes 1, the target's argmax is 0."""
    law = speculative_law(fixed(*P), lambda: neural(fixed(*Q)), 1, SamplingParams(0), Limits(3, NO_EOS))
    assert law == {(0, 0, 0): 1.0}


def test_equal_models_reject_nothing():
    """Field case 7."""
    target = TableModel(fixed(*P), 3)
    out = []

    def run(randomness):
        result = speculative(
            target, neural(fixed(*P)), 2, [0], SamplingParams(), Limits(3, NO_EOS), randomness
        )
        out.append(result)
        return tuple(result.tokens)

    assert_same_law(outcomes(run), target_law(fixed(*P), SamplingParams(), Limits(3, NO_EOS)))
    assert all(r.n_accepted == r.n_drafted for result in out for r in result.rounds)


def test_padded_widths():
    """Field case 11: 10 logits against 8, either way round."""
    wide, narrow = random_world(1, 4), random_world(2, 3)
    limits = Limits(2, NO_EOS)
    law = speculative_law(wide, lambda: neural(narrow, 3), 2, SamplingParams(), limits, width=4)
    assert_same_law(law, direct_law(wide, SamplingParams(), limits))
    law = speculative_law(narrow, lambda: neural(wide, 4), 2, SamplingParams(), limits)
    assert_same_law(law, direct_law(narrow, SamplingParams(), limits))


def test_the_length_cap_bounds_the_drafts():
    """Field case 13: 2 tokens left and gamma = 7 draft at most 1."""
    target = TableModel(fixed(*P), 3)
    law = {}

    def run(randomness):
        out = speculative(target, neural(fixed(*P)), 7, [0], SamplingParams(), Limits(2, NO_EOS), randomness)
        law[tuple(out.tokens)] = out
        return tuple(out.tokens)

    outcomes(run)
    assert {len(tokens) for tokens in law} == {2}
    assert {r.n_drafted for out in law.values() for r in out.rounds} == {1}


def test_an_end_token_among_the_drafts_ends_the_text():
    """Field case 14: drafts [1, end, ...] accepted give [1, end]."""
    end = 2
    chain = {(0,): 1, (0, 1): end, (0, 1, end): 1}

    def always(prefix):
        return np.eye(3)[chain.get(prefix, 1)]

    out = speculative(
        TableModel(always, 3), neural(always), 4, [0], SamplingParams(0), Limits(9, frozenset({end})), None_()
    )
    assert (out.tokens, out.stop) == ([1, end], "eos")
    assert [(r.n_drafted, r.n_accepted, r.emitted) for r in out.rounds] == [(2, 2, 2)]


class None_:
    """No chance is left at temperature 0: a categorical over a one-hot, and never a coin."""

    def categorical(self, probs):
        return int(probs.argmax())

    def bernoulli(self, prob):
        return prob >= 1
