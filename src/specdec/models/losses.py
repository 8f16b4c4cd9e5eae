"""Training losses, a token's mean. Shapes: N counted positions, V vocabulary, K teacher entries a position.

The teacher's distribution p arrives as its K largest entries; what is left of it is one bucket, on both
sides.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from specdec.models.examples import IGNORED
from specdec.models.recipe import Distillation

FLOOR = 1e-6


def data_loss(logits: torch.Tensor, labels: torch.Tensor, label_smoothing: float = 0.0) -> torch.Tensor:
    """Cross entropy to the text. logits [B, T, V], labels [B, T]."""
    return F.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, label_smoothing=label_smoothing
    )


@dataclass(frozen=True)
class Divergences:
    """Per position [N]: KL(p || q), total variation 1 - beta, cross entropy to the teacher's argmax."""

    kl: torch.Tensor
    tv: torch.Tensor
    argmax: torch.Tensor


def divergences(logits: torch.Tensor, top_ids: torch.Tensor, top_probs: torch.Tensor) -> Divergences:
    """Compare q = softmax(logits [N, V]) with p given by top_ids, top_probs [N, K], largest first.

    With K = V both are exact; else they are lower bounds, for entries within the bucket are not told apart.
    """
    log_q = logits.float().log_softmax(-1).gather(-1, top_ids)
    q = log_q.exp()
    rest_p = (1 - top_probs.sum(-1)).clamp_min(0)
    rest_q = (1 - q.sum(-1)).clamp_min(FLOOR)
    log_p = top_probs.clamp_min(1e-12).log()
    kl = (top_probs * (log_p - log_q)).sum(-1) + rest_p * (rest_p.clamp_min(1e-12).log() - rest_q.log())
    tv = 0.5 * ((top_probs - q).abs().sum(-1) + (rest_p - rest_q).abs())
    return Divergences(kl, tv, -log_q[:, 0])


def distillation_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    top_ids: torch.Tensor,
    top_probs: torch.Tensor,
    plan: Distillation,
) -> torch.Tensor:
    """The recipe's mixture of divergences, a token's mean. logits [B, T, V], labels [B, T]."""
    parts = divergences(logits[labels != IGNORED], top_ids, top_probs)
    return plan.kl * parts.kl.mean() + plan.tv * parts.tv.mean() + plan.argmax * parts.argmax.mean()
