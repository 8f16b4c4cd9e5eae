"""The two decoding loops: the target alone, and speculative decoding (Algorithm 1).

Shapes: g drafts of a round, V the vocabulary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from specdec.acceptance import accept
from specdec.decoding.drafts import Draft
from specdec.models.stepper import Stepper
from specdec.records import Generation, Round
from specdec.sampling import NonFiniteLogitsError, Randomness, SamplingParams, to_probs


@dataclass(frozen=True)
class Limits:
    """When a text ends: after ``max_new_tokens``, or with one of ``eos_ids``. Raises ``ValueError`` on a cap < 1."""

    max_new_tokens: int
    eos_ids: frozenset[int]

    def __post_init__(self):
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens = {self.max_new_tokens}: use at least 1")

    def cut(self, tokens: list[int]) -> list[int]:
        """``tokens`` up to and with the first end token."""
        for i, token in enumerate(tokens):
            if token in self.eos_ids:
                return tokens[: i + 1]
        return tokens

    def stop_reason(self, tokens: list[int]) -> str:
        return "eos" if tokens and tokens[-1] in self.eos_ids else "length"


@torch.inference_mode()
def baseline(
    target: Stepper,
    prompt: list[int],
    params: SamplingParams,
    limits: Limits,
    randomness: Randomness,
    on_prefill: Callable[[], None] = lambda: None,
) -> Generation:
    """Decode with the target alone, one token a run. ``on_prefill`` is called once the prompt is processed."""
    sequence = target.prefill(prompt)
    on_prefill()
    tokens: list[int] = []
    with _located(tokens):
        while len(tokens) < limits.max_new_tokens:
            logits = target.step(sequence[target.length :])
            token = randomness.categorical(to_probs(logits[-1], params))
            sequence.append(token)
            tokens.append(token)
            if token in limits.eos_ids:
                break
    return Generation(tokens, limits.stop_reason(tokens))


@torch.inference_mode()
def speculative(
    target: Stepper,
    draft: Draft,
    gamma: int,
    prompt: list[int],
    params: SamplingParams,
    limits: Limits,
    randomness: Randomness,
    on_prefill: Callable[[], None] = lambda: None,
) -> Generation:
    """Decode with Algorithm 1, a round at a time; the output follows the target's law exactly (Theorem A.1).

    A round drafts at most one token fewer than the text has left, and no more after a drafted end token.
    Raises ``ValueError`` when gamma < 1.
    """
    if gamma < 1:
        raise ValueError(f"gamma = {gamma}: a round drafts at least 1 token")
    sequence = target.prefill(prompt)
    draft.prefill(prompt, sequence)
    on_prefill()
    tokens: list[int] = []
    rounds: list[Round] = []
    with _located(tokens):
        while len(tokens) < limits.max_new_tokens and limits.stop_reason(tokens) != "eos":
            allowed = min(gamma, limits.max_new_tokens - len(tokens) - 1)
            drafts, q = draft.propose(sequence, allowed, params, limits, randomness)
            logits = target.step(sequence[target.length :] + drafts)
            p, q = one_width(to_probs(logits[-len(drafts) - 1 :], params), q)
            n, token = accept(drafts, q, p, randomness)
            emitted = limits.cut([*drafts[:n], token])
            sequence += emitted
            tokens += emitted
            rounds.append(Round(len(drafts), n, len(emitted)))
            target.rollback(len(sequence) - 1)
            draft.rollback(len(sequence) - 1)
    return Generation(tokens, limits.stop_reason(tokens), rounds)


@contextmanager
def _located(tokens: list[int]) -> Iterator[None]:
    try:
        yield
    except NonFiniteLogitsError as error:
        raise NonFiniteLogitsError(f"{error} after {len(tokens)} new tokens") from None


def one_width(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Pad the narrower of p and q with zeros: logit widths differ where a vocabulary was padded."""
    width = max(p.shape[-1], q.shape[-1])
    return tuple(functional.pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x for x in (p, q))
