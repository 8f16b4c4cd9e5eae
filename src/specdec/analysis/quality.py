"""BLEU and ROUGE of decoded text, per example first and totalled later, so that intervals cost one product.

BLEU is sacrebleu's on detokenised text; ROUGE is rouge_score's F1, the mean over examples, in percent.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version

import numpy as np
import pandas as pd
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

from specdec.analysis.bootstrap import Estimate, estimate
from specdec.errors import UserError
from specdec.records import BASELINE, SPECULATIVE

ROUGE_TYPES = ("rouge1", "rouge2", "rougeLsum")
SCORES = {"bleu": ("bleu",), "rouge": ROUGE_TYPES, "none": ()}
# BLEU is scored resample by resample, in Python.
BLEU_RESAMPLES = 1000
_BLEU, _ORDER = BLEU(), 4
_ROUGE = RougeScorer(ROUGE_TYPES)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SPACED_MARK = re.compile(r"\s[.,](\s|$)")


@dataclass(frozen=True)
class ArmQuality:
    """One score of both arms on the same examples; difference is speculative minus baseline, paired."""

    baseline: float
    speculative: float
    difference: Estimate


def score_names(metric: str) -> tuple[str, ...]:
    """The scores of a task's metric (bleu, rouge or none); raises ``UserError`` on another."""
    if metric not in SCORES:
        raise UserError(f"metric = {metric!r}: use one of {', '.join(SCORES)}")
    return SCORES[metric]


def score_texts(
    metric: str, ids: Sequence, texts: Sequence[str], references: Sequence[str]
) -> dict[str, Estimate]:
    """Each score of a set of texts with its interval over ids (samples of one id are resampled together)."""
    frame = _per_id(metric, ids, texts, references) if score_names(metric) else None
    return {
        name: estimate(frame, lambda totals, i=i, k=metric: _score(k, totals, i), _resamples(metric))
        for i, name in enumerate(score_names(metric))
    }


def score_arms(metric: str, records: pd.DataFrame) -> dict[str, ArmQuality]:
    """Each score of both arms of a cell, with the paired interval of their difference over examples."""
    if not score_names(metric):
        return {}
    arms = [
        _per_id(metric, rows["id"], rows["text"], rows["reference"])
        for rows in (records[records["arm"] == arm] for arm in (BASELINE, SPECULATIVE))
    ]
    width = arms[0].shape[1]
    paired = np.hstack(arms)
    scores = {}
    for i, name in enumerate(score_names(metric)):
        values = [float(_score(metric, arm.to_numpy().sum(axis=0), i)) for arm in arms]
        difference = estimate(
            paired,
            lambda t, i=i: _score(metric, t[..., width:], i) - _score(metric, t[..., :width], i),
            _resamples(metric),
        )
        scores[name] = ArmQuality(*values, difference)
    return scores


def signature(metric: str) -> str | None:
    """How the scores were made, in sacrebleu's form; None where nothing is scored."""
    if metric == "bleu":
        _BLEU.corpus_score(["a"], [["a"]])  # sets the number of references, which the signature states
        return str(_BLEU.get_signature())
    if metric == "rouge":
        return f"nrefs:1|stemmer:no|Lsum:one sentence a line|score:F1 mean|version:{version('rouge-score')}"
    return None


def pretokenised(texts: Sequence[str]) -> str | None:
    """A warning where at least a fifth of the texts set full stops or commas apart, as tokenisers do; else
    None.

    BLEU and ROUGE expect plain text: tokenised references move BLEU by points.
    """
    spaced = sum(bool(_SPACED_MARK.search(text)) for text in texts)
    if spaced == 0 or spaced < len(texts) / 5:
        return None
    return (
        f"{spaced} of {len(texts)} texts look pretokenised (' .' or ' ,'): scores move; detokenise them first"
    )


def sentence_per_line(text: str) -> str:
    """One sentence a line, as ROUGE-Lsum wants it; text that already has lines keeps them."""
    return text if "\n" in text.strip() else "\n".join(_SENTENCE_END.split(text.strip()))


def _per_id(metric: str, ids: Sequence, texts: Sequence[str], references: Sequence[str]) -> pd.DataFrame:
    """What each id adds to the totals of ``_score``, sorted by id."""
    parts = _bleu_parts if metric == "bleu" else _rouge_parts
    rows = [parts(text, reference) for text, reference in zip(texts, references, strict=True)]
    return pd.DataFrame(rows).groupby(np.asarray(ids), sort=True).sum()


@lru_cache(maxsize=65536)
def _bleu_parts(text: str, reference: str) -> tuple[int, ...]:
    score = BLEU(effective_order=True).sentence_score(text, [reference])
    return (*score.counts, *score.totals, score.sys_len, score.ref_len)


@lru_cache(maxsize=65536)
def _rouge_parts(text: str, reference: str) -> tuple[float, ...]:
    scores = _ROUGE.score(sentence_per_line(reference), sentence_per_line(text))
    return (*(scores[name].fmeasure for name in ROUGE_TYPES), 1.0)


def _score(metric: str, totals: np.ndarray, i: int) -> np.ndarray:
    """Score number ``i`` of a metric, in percent, from totals [..., k]."""
    if metric == "rouge":
        return 100.0 * totals[..., i] / totals[..., -1]
    return np.apply_along_axis(_bleu, -1, totals)


def _bleu(totals: np.ndarray) -> float:
    counts, lengths = totals[: 2 * _ORDER].astype(int).tolist(), totals[2 * _ORDER :].astype(int).tolist()
    return BLEU.compute_bleu(counts[:_ORDER], counts[_ORDER:], *lengths, smooth_method="exp").score


def _resamples(metric: str) -> int:
    return BLEU_RESAMPLES if metric == "bleu" else 2 * BLEU_RESAMPLES
