"""Batched generation over cached forward passes, for teacher text and for the BLEU of a finished model.

Timed decoding is batch 1 and lives in ``specdec.decoding``; this one is for throughput. transformers' own
``generate`` fails on encoder-decoders with more decoder than encoder layers, and does not hand out the
distributions.
Shapes: B sequences of a batch, S prompt length, V vocabulary, K kept entries a position.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel


@dataclass
class Generated:
    """One sequence: new tokens (end token included when reached) and the K largest entries of p at each.

    p is the model's distribution at temperature 1, whatever temperature the tokens were drawn at.
    """

    tokens: list[int] = field(default_factory=list)
    top_ids: list[np.ndarray] = field(default_factory=list)
    top_probs: list[np.ndarray] = field(default_factory=list)


class _Batch:
    """Sequences under way: the caches hold the rows still active, ``rows`` their places in the output."""

    def __init__(self, model: PreTrainedModel, prompts: list[np.ndarray], pad: int, end: int):
        self._model = model
        self._seq2seq = model.config.is_encoder_decoder
        parameters = inspect.signature(model.forward).parameters
        # transformers renames this argument from 5.24 on.
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self.rows = torch.arange(len(prompts))
        if self._seq2seq:
            padded = torch.nn.utils.rnn.pad_sequence(
                [torch.tensor([*p, end]) for p in prompts], batch_first=True, padding_value=pad
            )
            lengths = torch.tensor([len(p) + 1 for p in prompts])
            self._mask = (torch.arange(padded.shape[1]) < lengths[:, None]).long()
            self._encoded = model.get_encoder()(input_ids=padded, attention_mask=self._mask).last_hidden_state
            self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            self.pending = torch.full((len(prompts), 1), pad)
        else:
            self._cache = DynamicCache()
            self.pending = torch.tensor([[end, *p] for p in prompts])

    def logits(self) -> torch.Tensor:
        """Run the pending tokens; logits [B, V] of the position that follows them."""
        cache = {self._cache_name: self._cache}
        if self._seq2seq:
            out = self._model(
                encoder_outputs=(self._encoded,),
                attention_mask=self._mask,
                decoder_input_ids=self.pending,
                use_cache=True,
                **cache,
            )
        else:
            out = self._model(input_ids=self.pending, use_cache=True, **cache)
        return out.logits[:, -1].float()

    def keep(self, alive: torch.Tensor) -> None:
        """Drop finished rows, once they are a quarter of the batch: copying the caches costs too."""
        if alive.sum() > 0.75 * len(alive):
            return
        index = alive.nonzero().flatten()
        self._cache.batch_select_indices(index)
        self.rows, self.pending = self.rows[index], self.pending[index]
        if self._seq2seq:
            self._mask, self._encoded = self._mask[index], self._encoded[index]


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    prompts: list[np.ndarray],
    *,
    temperature: float,
    max_new_tokens: int,
    seed: int = 0,
    top_k: int = 0,
    batch_size: int = 128,
    on_batch: Callable[[int], None] = lambda done: None,
) -> list[Generated]:
    """Continue each prompt (ids without end token) up to the end token or ``max_new_tokens``.

    temperature 0 takes the argmax, else ancestral sampling. top_k: entries of p to keep a position. The
    result depends on the seed and on the set of prompts, not on the number of threads short of rounding.
    """
    results = [Generated() for _ in prompts]
    top_k = min(top_k, model.config.vocab_size)
    for number, index in enumerate(
        _batches([len(p) for p in prompts], batch_size, model.config.is_encoder_decoder)
    ):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + number)
        batch = _Batch(
            model, [prompts[i] for i in index], model.config.pad_token_id, model.config.eos_token_id
        )
        _run(batch, [results[i] for i in index], temperature, max_new_tokens, generator, top_k)
        on_batch(len(index))
    return results


def _batches(lengths: list[int], size: int, mixed: bool) -> list[list[int]]:
    """Row numbers in batches of like prompt length, of equal length unless ``mixed``."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    batches: list[list[int]] = []
    for i in order:
        fits = batches and len(batches[-1]) < size and (mixed or lengths[batches[-1][0]] == lengths[i])
        if fits:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def _run(
    batch: _Batch,
    results: list[Generated],
    temperature: float,
    limit: int,
    generator: torch.Generator,
    top_k: int,
) -> None:
    done = torch.zeros(len(results), dtype=torch.bool)
    end = batch._model.config.eos_token_id
    for _ in range(limit):
        logits = batch.logits()
        tokens = _draw(logits, temperature, generator)
        top = logits.softmax(-1).topk(top_k) if top_k else None
        for place, row in enumerate(batch.rows.tolist()):
            if not done[row]:
                results[row].tokens.append(int(tokens[place]))
                if top:
                    results[row].top_ids.append(top.indices[place].numpy())
                    results[row].top_probs.append(top.values[place].numpy())
        done[batch.rows] |= tokens == end
        if done.all():
            return
        batch.pending = tokens[:, None]
        batch.keep(~done[batch.rows])


def _draw(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> torch.Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator).flatten()
