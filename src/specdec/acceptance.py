"""Speculative sampling: the rule that accepts draft tokens and keeps the target's law (Algorithm 1, Theorem A.1).

Shapes: g drafts of a round, V the vocabulary. p is the target's distribution, q the draft's.
"""

from collections.abc import Sequence

import torch

from specdec.sampling import Randomness


def overlap(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """beta = sum_x min(p(x), q(x)) = 1 - total variation (Theorem 3.5). [..., V] x2 -> [...]"""
    return torch.minimum(p, q).sum(dim=-1)


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """norm(max(0, p - q)), the law of the token that replaces a rejected one. [V] x2 -> [V]

    When p equals q nothing is left and nothing can be rejected, short of rounding; then p itself is returned.
    """
    rest = (p - q).clamp_min(0)
    mass = rest.sum()
    return rest / mass if mass > 0 else p


def accept(
    drafts: Sequence[int], q: torch.Tensor, p: torch.Tensor, randomness: Randomness, lenience: float = 1.0
) -> tuple[int, int]:
    """Steps 3 and 4 of Algorithm 1: how many drafts are accepted, and the token that follows them.

    drafts: g token ids; q: [g, V], row i the distribution drafts[i] was drawn from; p: [g + 1, V].
    Returns (n, t): drafts[:n] are accepted and t comes after them, 0 <= n <= g.
    lenience: l of A.5, compares l * q(x) with p(x); below 1 the output no longer follows the target's law, yet no
    token becomes likelier than p(x) / l.
    """
    n = len(drafts)
    if n:
        index = torch.as_tensor(drafts, device=p.device).unsqueeze(1)
        p_drafted = p[:n].gather(1, index).flatten().tolist()
        q_drafted = q.gather(1, index).flatten().tolist()
        for i, (p_x, q_x) in enumerate(zip(p_drafted, q_drafted, strict=True)):
            if p_x < lenience * q_x and not randomness.bernoulli(p_x / (lenience * q_x)):
                n = i
                break
    if n < len(drafts):
        return n, randomness.categorical(residual(p[n], q[n]))
    return n, randomness.categorical(p[n])
