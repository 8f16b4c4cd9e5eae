"""A model bound to one prompt, as four verbs: prefill, step, rollback, length.

Shapes: n tokens of a step, d the model width, H heads, D the head width, T the cached positions, V the vocabulary.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from specdec.errors import UserError
from specdec.models.loading import LanguageModel


class Stepper(Protocol):
    """What decoding needs of a model. Encoder-decoder and decoder-only behave alike.

    length: positions of the decoder's sequence whose keys and values are cached.
    """

    length: int

    def prefill(self, prompt: list[int]) -> list[int]:
        """Start a prompt; returns the decoder's sequence so far, of which at least the last token is not cached.

        Raises ``UserError`` when the prompt is empty or does not fit.
        """
        ...

    def step(self, tokens: list[int]) -> Tensor:
        """Run n new tokens in one pass; returns the logits that follow each of them, [n, V]."""
        ...

    def rollback(self, length: int) -> None:
        """Forget all but the first ``length`` positions. A number is set; nothing is copied."""
        ...


class KVCache:
    """Keys and values of all layers, preallocated: [layers, H, capacity, D] each. Rollback is a number."""

    def __init__(self, layers: int, heads: int, capacity: int, width: int, like: Tensor):
        self.keys = like.new_zeros(layers, heads, capacity, width)
        self.values = like.new_zeros(layers, heads, capacity, width)
        self.capacity = capacity

    def write(self, layer: int, start: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store [H, n, D] at ``start``; returns all of the layer's, [H, start + n, D]."""
        end = start + keys.shape[1]
        self.keys[layer, :, start:end] = keys
        self.values[layer, :, start:end] = values
        return self.keys[layer, :, :end], self.values[layer, :, :end]


class CausalStepper:
    """Four verbs of a decoder-only model; a subclass gives ``hidden`` and ``logits``."""

    def __init__(self, name: str, capacity: int):
        self.name, self.capacity, self.length = name, capacity, 0

    def prefill(self, prompt: list[int]) -> list[int]:
        if not prompt:
            raise UserError(
                f"{self.name}: empty prompt and no start token; give the prompt at least one token"
            )
        check_fits(self.name, len(prompt), self.capacity)
        self.length = 0
        if len(prompt) > 1:
            self._run(prompt[:-1])
        return list(prompt)

    def step(self, tokens: list[int]) -> Tensor:
        return self.logits(self._run(tokens))

    def rollback(self, length: int) -> None:
        self.length = min(self.length, length)

    def _run(self, tokens: list[int]) -> Tensor:
        check_fits(self.name, self.length + len(tokens), self.capacity)
        hidden = self.hidden(torch.tensor(tokens, device=self.device))
        self.length += len(tokens)
        return hidden


def check_fits(name: str, length: int, capacity: int) -> None:
    """Raise ``UserError`` when ``length`` positions exceed the model's."""
    if length > capacity:
        raise UserError(
            f"{name}: {length} tokens do not fit into {capacity} positions;"
            " shorten the prompt or lower max_new_tokens or gamma"
        )


def causal_mask(capacity: int, like: Tensor) -> Tensor:
    """Additive mask [capacity, capacity]: row i sees columns up to i."""
    return torch.full((capacity, capacity), -torch.inf, dtype=like.dtype, device=like.device).triu(1)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root-mean-square norm with the statistics in float32, as T5 and Llama compute it. [n, d] -> [n, d]"""
    return weight * functional.rms_norm(x.float(), (x.shape[-1],), eps=eps).to(weight.dtype)


def make_stepper(model: LanguageModel, capacity: int) -> Stepper:
    """Bind a model to preallocated caches of ``capacity`` decoder positions.

    T5, GPT-2 and Llama shapes get a lean stepper of their own; any other decoder-only or encoder-decoder model runs
    through transformers' forward. Raises ``UserError`` when the model has fewer positions than ``capacity``.
    """
    from specdec.models.generic import GenericStepper
    from specdec.models.gpt2 import GPT2Stepper
    from specdec.models.llama import LlamaStepper
    from specdec.models.t5 import T5Stepper

    for lean in (T5Stepper, GPT2Stepper, LlamaStepper):
        if lean.supports(model.model.config):
            return lean(model, capacity)
    return GenericStepper(model, capacity)
