"""From logits to the distributions p and q, and the two random primitives that draw from them.

Shapes: V is the vocabulary, n a number of positions.
"""

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch


@dataclass(frozen=True)
class SamplingParams:
    """How logits become a distribution (Section 2.2): applied to the target and the draft alike.

    temperature: 0 is argmax, an exact one-hot. top_k: 0 keeps all. top_p: 1 keeps all.
    Raises ``ValueError`` on values outside their range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self):
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature = {self.temperature}: use 0 (argmax) or a positive number")
        if self.top_k < 0:
            raise ValueError(f"top_k = {self.top_k}: use 0 (off) or a positive number")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p = {self.top_p}: use a number in (0, 1]; 1 is off")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0


class NonFiniteLogitsError(ValueError):
    """The model produced NaN, +inf, or a row of -inf only: no token may be drawn from it."""


def to_probs(logits: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """Standardise logits [..., V] into probabilities [..., V], float32 (float64 stays float64).

    Temperature comes first, then top-k (ties with the k-th value are kept), then top-p (the smallest set whose
    mass reaches ``top_p``). Temperature 0 gives the one-hot argmax, ties to the lowest id.
    Raises ``NonFiniteLogitsError`` on NaN or +inf logits, or when every logit of a row is -inf.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if params.greedy:
        best, token = logits.max(dim=-1, keepdim=True)
        if not bool(torch.isfinite(best).all()):
            raise NonFiniteLogitsError("non-finite logits")
        return torch.zeros_like(logits).scatter_(-1, token, 1.0)
    if params.temperature != 1:
        logits = logits / params.temperature
    if 0 < params.top_k < logits.shape[-1]:
        kth = logits.topk(params.top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    probs = logits.softmax(dim=-1)
    # softmax spreads one bad logit over its whole row, so one entry a row tells.
    if bool(torch.isnan(probs[..., 0]).any()):
        raise NonFiniteLogitsError("non-finite logits")
    return _nucleus(probs, params.top_p) if params.top_p < 1 else probs


def _nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    ordered, index = probs.sort(dim=-1, descending=True, stable=True)
    outside = ordered.cumsum(dim=-1) - ordered >= top_p
    ordered = ordered.masked_fill(outside, 0.0)
    kept = torch.zeros_like(probs).scatter_(-1, index, ordered)
    return kept / kept.sum(dim=-1, keepdim=True)


class Randomness(Protocol):
    """The only two ways in which chance enters decoding.

    Tests put an enumerator in its place, which walks every branch with its exact weight.
    """

    def categorical(self, probs: torch.Tensor) -> int:
        """Draw a token id from probs [V]."""
        ...

    def bernoulli(self, prob: float) -> bool:
        """Draw True with probability ``prob`` (values above 1 count as 1)."""
        ...


class SeededRandomness:
    """One generator per (seed, example id, sample index): results do not depend on order or on sharding."""

    def __init__(self, seed: int, example_id: str, sample_index: int = 0):
        key = f"{seed}\0{sample_index}\0{example_id}".encode()
        self._generator = np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:16], "big"))

    def categorical(self, probs: torch.Tensor) -> int:
        """Inverse transform in float64; a token of probability 0 is never drawn."""
        cumulative = probs.numpy(force=True).cumsum(dtype=np.float64)
        # The largest double below 1 times the total may round up to the total: step back to the last token with mass.
        point = min(self._generator.random() * cumulative[-1], np.nextafter(cumulative[-1], 0.0))
        return int(cumulative.searchsorted(point, side="right"))

    def bernoulli(self, prob: float) -> bool:
        return self._generator.random() < prob
