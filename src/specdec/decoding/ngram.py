"""Unigram and bigram tables as drafts: trained on the training text, smoothed, stored sparse (Section 3.6).

Shapes: V the vocabulary (the target's logit width), E the distinct bigrams.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from specdec.errors import UserError
from specdec.files import atomic_path

KINDS = {1: "unigram", 2: "bigram"}
DISCOUNT = 0.75


@dataclass
class NgramTable:
    """q(x | last token), for an order of 1 the same everywhere.

    Unigram: add-one counts. Bigram: absolute discounting of ``DISCOUNT`` a seen pair, the freed mass spread by the
    unigram, so that no token has probability zero.
    unigram: [V] probabilities; start: [V + 1] offsets into ids and counts, [E] each, by context.
    """

    order: int
    unigram: np.ndarray
    start: np.ndarray
    ids: np.ndarray
    counts: np.ndarray

    @property
    def kind(self) -> str:
        return KINDS[self.order]

    @property
    def width(self) -> int:
        return len(self.unigram)

    def context(self, last: int) -> int:
        """What the next token depends on: the last token, or nothing."""
        return last if self.order == 2 else 0

    def log_probs(self, context: int) -> torch.Tensor:
        """log q(. | context), [V] float32."""
        probs = self.unigram
        if self.order == 2 and context < self.width:
            seen = slice(self.start[context], self.start[context + 1])
            ids, counts = self.ids[seen], self.counts[seen]
            total = counts.sum()
            if total:
                probs = probs * (DISCOUNT * len(ids) / total)
                probs[ids] += (counts - DISCOUNT) / total
        return torch.from_numpy(np.log(probs)).float()

    def save(self, path: str | Path) -> None:
        """Write safetensors, whole or not at all."""
        arrays = {"unigram": self.unigram, "start": self.start, "ids": self.ids, "counts": self.counts}
        with atomic_path(path) as temporary:
            save_file(arrays, temporary, metadata={"order": str(self.order)})


def train(sequences: list[list[int]], order: int, width: int) -> NgramTable:
    """Count n-grams in token sequences that begin with the start token. Raises ``UserError`` without any token."""
    if order not in KINDS:
        raise UserError(f"order {order}: n-gram tables are of order 1 (unigram) or 2 (bigram)")
    arrays = [np.asarray(s) for s in sequences if len(s) > 1]
    if not arrays:
        raise UserError("no text to count n-grams in: the training split is empty")
    before = np.concatenate([a[:-1] for a in arrays])
    after = np.concatenate([a[1:] for a in arrays])
    counts = np.bincount(after, minlength=width) + 1.0
    pairs, pair_counts = np.unique(before.astype(np.int64) * width + after, return_counts=True)
    start = np.searchsorted(pairs, np.arange(width + 1, dtype=np.int64) * width)
    return NgramTable(order, counts / counts.sum(), start, pairs % width, pair_counts.astype(np.float64))


def load(path: str | Path) -> NgramTable:
    """Read a table; raises ``UserError`` when the file is missing or broken."""
    try:
        with safe_open(str(path), "numpy") as handle:
            order = int(handle.metadata()["order"])
            return NgramTable(order, *(handle.get_tensor(k) for k in ("unigram", "start", "ids", "counts")))
    except FileNotFoundError:
        raise UserError(f"{path}: no such n-gram table; run the ngram stage first") from None
    except (SafetensorError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not an n-gram table ({error}); delete it and run the ngram stage") from None
