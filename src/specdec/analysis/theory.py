"""The paper's formulas (Sections 3.1 to 3.5 and A.5), and the same round counted along measured acceptances.

All functions broadcast over NumPy arrays and return arrays or scalars of the broadcast shape, float64.
Letters are the paper's: alpha mean acceptance, gamma drafts a round, c draft time over target time, c_hat
draft operations over target operations. Every function raises ``ValueError`` on gamma < 1, alpha outside
[0, 1] or a negative or non-finite cost.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def tokens_per_round(alpha: ArrayLike, gamma: ArrayLike) -> np.ndarray:
    """Equation 1: E(tokens of a round) = (1 - alpha^(gamma+1)) / (1 - alpha), and gamma + 1 at alpha = 1."""
    alpha, gamma = _alpha(alpha), _gamma(gamma)
    miss = 1.0 - alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        # expm1 and log1p keep the digits that 1 - alpha^(gamma+1) would cancel near alpha = 1.
        mean = -np.expm1((gamma + 1) * np.log1p(-miss)) / miss
    return np.where(miss == 0, gamma + 1.0, mean)[()]


def round_speedup(
    tokens: ArrayLike, gamma: ArrayLike, c: ArrayLike, verification: ArrayLike = 1.0
) -> np.ndarray:
    """Speed of rounds that emit ``tokens`` on average, against one target run a token.

    A round takes gamma draft runs and one target run over gamma + 1 positions: gamma c + ``verification``
    target runs. verification: t_p(gamma + 1) / t_p(1), which the paper takes as 1.
    """
    gamma, c = _gamma(gamma), _cost(c, "c")
    verification = _cost(verification, "verification")
    if np.any(verification == 0):
        raise ValueError("verification = 0: a target run takes time")
    tokens = np.asarray(tokens, dtype=np.float64)
    if not np.all(np.isfinite(tokens)) or np.any(tokens < 0):
        raise ValueError("tokens of a round: use finite numbers of 0 or more")
    return (tokens / (gamma * c + verification))[()]


def speedup(alpha: ArrayLike, gamma: ArrayLike, c: ArrayLike, verification: ArrayLike = 1.0) -> np.ndarray:
    """Theorem 3.8: (1 - alpha^(gamma+1)) / ((1 - alpha)(gamma c + 1)). verification: as in round_speedup."""
    return round_speedup(tokens_per_round(alpha, gamma), gamma, c, verification)


def improves(alpha: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Corollary 3.9: whether some gamma makes decoding faster, which is alpha > c."""
    return (_alpha(alpha) > _cost(c, "c"))[()]


def least_improvement(alpha: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Corollary 3.9: the speed (1 + alpha) / (1 + c) of gamma = 1, a floor wherever ``improves`` holds."""
    return ((1.0 + _alpha(alpha)) / (1.0 + _cost(c, "c")))[()]


def operations(alpha: ArrayLike, gamma: ArrayLike, c_hat: ArrayLike) -> np.ndarray:
    """Theorem 3.11: growth of operations, (1 - alpha)(gamma c_hat + gamma + 1) / (1 - alpha^(gamma+1))."""
    gamma, c_hat = _gamma(gamma), _cost(c_hat, "c_hat")
    return ((gamma * c_hat + gamma + 1.0) / tokens_per_round(alpha, gamma))[()]


def best_gamma(
    alpha: ArrayLike, c: ArrayLike, gamma_max: int = 64, verification: Sequence[float] | None = None
) -> np.ndarray:
    """Section 3.5: the integer gamma in 1 .. gamma_max of the highest speed; 0 where none beats plain
    decoding.

    verification: t_p(gamma + 1) / t_p(1) for each gamma in 1 .. gamma_max, or None for the paper's flat 1.
    Ties go to the lower gamma. Where c is 0 the speed grows without end, and the answer is bounded by
    gamma_max (or by the gamma at which float64 no longer sees the gain).
    """
    gammas = np.arange(1, int(_gamma(gamma_max)) + 1)
    flat = np.ones(len(gammas)) if verification is None else np.asarray(verification, dtype=np.float64)
    if flat.shape != gammas.shape:
        raise ValueError(
            f"verification has shape {flat.shape}: give one value for each gamma in 1 .. {gamma_max}"
        )
    speeds = speedup(np.asarray(alpha)[..., None], gammas, np.asarray(c)[..., None], flat)
    return np.where(speeds.max(axis=-1) > 1.0, gammas[speeds.argmax(axis=-1)], 0)[()]


def oracle_tokens_per_round(alpha: ArrayLike) -> np.ndarray:
    """Section 3.5: E(tokens of a round) = 1 / (1 - alpha) when an oracle picks gamma; inf at alpha = 1."""
    with np.errstate(divide="ignore"):
        return (1.0 / (1.0 - _alpha(alpha)))[()]


def oracle_speedup(alpha: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Section 3.5: speed when each round drafts exactly the tokens that will be accepted, alpha / (1 -
    alpha) of them.

    1 / (1 - alpha + alpha c): infinite where alpha = 1 and c = 0. No choice of a fixed gamma is faster.
    """
    alpha, c = np.broadcast_arrays(_alpha(alpha), _cost(c, "c"))
    with np.errstate(divide="ignore", over="ignore"):
        return (1.0 / (1.0 - alpha + alpha * c))[()]


def lenient_alpha(p: ArrayLike, q: ArrayLike, lenience: ArrayLike) -> np.ndarray:
    """A.5: chance that a draft is accepted when l q(x) is compared with p(x): sum over x of min(p(x) / l,
    q(x)).

    p, q: distributions [..., V]; lenience: l in [0, 1], broadcast against the leading axes. l = 1 is
    lossless and gives beta (Theorem 3.5); l = 0 accepts everything. Raises ``ValueError`` on l outside [0,
    1] and on p or q that are no distributions (to 1e-6).
    """
    p, q = _distribution(p, "p"), _distribution(q, "q")
    lenience = np.asarray(lenience, dtype=np.float64)
    if not np.all((lenience >= 0) & (lenience <= 1)):
        raise ValueError("lenience: use numbers in [0, 1]")
    with np.errstate(all="ignore"):
        accepted = np.minimum(p / lenience[..., None], q).sum(axis=-1)
    return np.clip(np.where(lenience == 0, 1.0, accepted), 0.0, 1.0)[()]


def expected_rounds(paths: Sequence[ArrayLike], gamma: int) -> np.ndarray:
    """Expected target runs for given texts, each with its own chance of acceptance at every position.

    paths: one array a text, its i-th entry the chance that a draft for token i is accepted. Returns
    [len(paths)].

    Rounds form a renewal chain over positions: the first starts at token 0; one that starts at s accepts
    exactly n drafts with chance a_s ... a_{s+n-1} (1 - a_{s+n}), all gamma with a_s ... a_{s+gamma-1},
    emits n + 1 tokens, and the next starts at s + n + 1. With r tokens left a round cannot need more than r
    - 1 drafts: accepting r - 1 ends the text whether the last token is a draft or the target's own. So,
    from the end backwards,

        R(r) = 1 + sum_n P(n) R(r - n - 1),   R(0) = 0,

    which is exact: nothing is simulated and no start is assumed typical. With equal chances and long texts
    tokens / R tends to Equation 1.

    Which chances make it exact: given the emitted token x, a tested draft was accepted with chance min(1,
    q(x) / p(x)), independently of everything after it, because both branches of the acceptance step go on
    from the same prefix (Theorem A.1). With these the mean over texts drawn from the target is the true
    expected number of rounds. beta = sum_x min(p, q) in their place is their mean over x; at temperature 0
    the two are equal, above it beta leaves out that tokens which are accepted lead to other prefixes than
    tokens which are rejected.

    Raises ``ValueError`` on gamma < 1, an empty text, or a chance outside [0, 1].
    """
    gamma = int(_gamma(gamma))
    rows = [_alpha(path, "acceptance") for path in paths]
    if any(row.ndim != 1 or row.size == 0 for row in rows):
        raise ValueError("paths: give one non-empty list of chances a text")
    longest = max((len(row) for row in rows), default=0)
    # Texts are aligned at their ends, so that column r - 1 holds the token with r left, for all texts at
    # once.
    chance = np.zeros((len(rows), longest))
    for i, row in enumerate(rows):
        chance[i, : len(row)] = row[::-1]
    rounds = np.zeros((len(rows), longest + 1))
    for left in range(1, longest + 1):
        drafts = min(gamma, left - 1)
        reached = np.ones((len(rows), drafts + 1))
        np.cumprod(chance[:, left - drafts : left][:, ::-1], axis=1, out=reached[:, 1:])
        exactly = reached.copy()
        exactly[:, :-1] -= reached[:, 1:]
        rounds[:, left] = 1.0 + (exactly * rounds[:, left - drafts - 1 : left][:, ::-1]).sum(axis=1)
    lengths = np.array([len(row) for row in rows], dtype=int)
    return rounds[np.arange(len(rows)), lengths]


def _alpha(alpha: ArrayLike, name: str = "alpha") -> np.ndarray:
    alpha = np.asarray(alpha, dtype=np.float64)
    if not np.all((alpha >= 0) & (alpha <= 1)):
        raise ValueError(f"{name}: use numbers in [0, 1]")
    return alpha


def _gamma(gamma: ArrayLike) -> np.ndarray:
    gamma = np.asarray(gamma)
    if not np.all((gamma >= 1) & (gamma == np.floor(gamma)) & np.isfinite(gamma)):
        raise ValueError("gamma: use whole numbers of at least 1")
    return gamma


def _cost(cost: ArrayLike, name: str) -> np.ndarray:
    cost = np.asarray(cost, dtype=np.float64)
    if not np.all((cost >= 0) & np.isfinite(cost)):
        raise ValueError(f"{name}: use finite numbers of at least 0")
    return cost


def _distribution(probs: ArrayLike, name: str) -> np.ndarray:
    probs = np.asarray(probs, dtype=np.float64)
    if not (np.all(probs >= 0) and np.allclose(probs.sum(axis=-1), 1.0, rtol=0, atol=1e-6)):
        raise ValueError(f"{name}: not a distribution over the last axis")
    return probs
