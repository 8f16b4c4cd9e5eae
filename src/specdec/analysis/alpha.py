"""The two alphas, never mixed, and what a round yields.

alpha by overlap is the paper's (Corollary 3.6): the mean of beta = sum_x min(p, q) over tokens the target
itself generated. alpha by counts comes from speculative runs: accepted over tested drafts, where testing
stops at the first rejection. Drafts behind a rejection were never tested; the target's own token at the end
of a round is not a draft; so neither enters the counts.
"""

import numpy as np
import pandas as pd

from specdec.analysis.bootstrap import Estimate, ratio_of_totals
from specdec.analysis.theory import expected_rounds

# A sum of float32 minima may exceed 1 by rounding; more than this is an error in the file.
ROUNDING = 1e-4


def overlap_alpha(scored: pd.DataFrame) -> Estimate:
    """alpha by overlap with its interval over prompts, from rows of one draft at one temperature.

    scored: columns id, tokens (count), beta_sum (float rounding above 1 a token is cut). Several samples of
    one prompt are resampled together.
    """
    totals = scored.groupby("id", sort=True)[["beta_sum", "tokens"]].sum()
    return ratio_of_totals(np.minimum(totals["beta_sum"], totals["tokens"]), totals["tokens"])


def path_tokens_per_round(scored: pd.DataFrame, gamma: int) -> Estimate:
    """Tokens of a round along the measured path of acceptances, in place of Equation 1's equal ones.

    scored: as for ``overlap_alpha``, with the chances a position as lists: column ``accepts``, min(1, q(x)
    / p(x)) of the token x that follows, where there is one, else ``betas`` (``expected_rounds`` tells them
    apart). Raises ``ValueError`` on a chance outside [0, 1].
    """
    column = "accepts" if "accepts" in scored else "betas"
    paths = [_rounded_to_unit(np.asarray(path, dtype=np.float64)) for path in scored[column]]
    frame = scored[["id", "tokens"]].assign(rounds=expected_rounds(paths, gamma))
    totals = frame.groupby("id", sort=True)[["tokens", "rounds"]].sum()
    return ratio_of_totals(totals["tokens"], totals["rounds"])


def _rounded_to_unit(chances: np.ndarray) -> np.ndarray:
    near = (chances > -ROUNDING) & (chances < 1 + ROUNDING)
    return np.where(near, np.clip(chances, 0.0, 1.0), chances)


def flat_rounds(speculative: pd.DataFrame) -> pd.DataFrame:
    """One row a round, from records of the speculative arm: id, n_drafted, n_accepted, emitted, tested."""
    rows = [
        (record_id, each["n_drafted"], each["n_accepted"], each["emitted"])
        for record_id, rounds in zip(speculative["id"], speculative["rounds"], strict=True)
        for each in rounds
    ]
    frame = pd.DataFrame(rows, columns=["id", "n_drafted", "n_accepted", "emitted"])
    frame["tested"] = frame["n_accepted"] + (frame["n_accepted"] < frame["n_drafted"])
    return frame


def counts_alpha(rounds: pd.DataFrame) -> Estimate:
    """alpha by counts, accepted / tested, with its interval over examples; NaN where nothing was tested.

    rounds: from ``flat_rounds``. A round in which a copy draft found nothing to propose tests nothing,
    whereas its overlap there is 0: for copy drafts the counts lie above the overlap by that much.
    """
    totals = rounds.groupby("id", sort=True)[["n_accepted", "tested"]].sum()
    return ratio_of_totals(totals["n_accepted"], totals["tested"])


def tokens_per_round(rounds: pd.DataFrame) -> Estimate:
    """Measured tokens of a round (target runs saved, Equation 1) with its interval over examples."""
    totals = rounds.groupby("id", sort=True)["emitted"].agg(["sum", "size"])
    return ratio_of_totals(totals["sum"], totals["size"])


def accepted_counts(rounds: pd.DataFrame, gamma: int) -> list[int]:
    """How many rounds accepted 0, 1, ... gamma drafts, [gamma + 1]."""
    return np.bincount(rounds["n_accepted"], minlength=gamma + 1).tolist()
