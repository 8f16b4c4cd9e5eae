"""GPT-2 as a stepper on preallocated caches.

Shapes: n tokens of a step, d the model width, H heads, D the head width, T the cached positions.
"""

import torch
from torch import Tensor
from torch.nn import functional
from transformers.activations import ACT2FN

from specdec.models.loading import LanguageModel
from specdec.models.stepper import CausalStepper, KVCache, causal_mask, check_fits


class GPT2Stepper(CausalStepper):
    """The four verbs for a GPT-2 shape: learned positions, layer norms with bias, fused query, key and value."""

    @staticmethod
    def supports(config) -> bool:
        return (
            config.model_type == "gpt2"
            and config.scale_attn_weights
            and not config.scale_attn_by_inverse_layer_idx
            and not config.add_cross_attention
        )

    def __init__(self, language_model: LanguageModel, capacity: int):
        super().__init__(language_model.name, capacity)
        model, config = language_model.model, language_model.model.config
        check_fits(self.name, capacity, config.n_positions)
        body = model.transformer
        self.tokens, self.positions = body.wte.weight, body.wpe.weight
        self.device = self.tokens.device
        self.blocks = body.h
        self.final_norm = body.ln_f
        self.head = model.lm_head.weight
        self.activation = ACT2FN[config.activation_function]
        self.heads, self.head_dim = config.n_head, config.n_embd // config.n_head
        self.cache = KVCache(config.n_layer, self.heads, capacity, self.head_dim, self.tokens)
        self.mask = causal_mask(capacity, self.tokens)

    def hidden(self, ids: Tensor) -> Tensor:
        start, end = self.length, self.length + len(ids)
        x = functional.embedding(ids, self.tokens) + self.positions[start:end]
        mask = self.mask[start:end, :end]
        for index, block in enumerate(self.blocks):
            x = x + self._attention(block.ln_1(x), block.attn, index, mask)
            inner = self.activation(_conv1d(block.ln_2(x), block.mlp.c_fc))
            x = x + _conv1d(inner, block.mlp.c_proj)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(self.final_norm(hidden), self.head)

    def _attention(self, x: Tensor, attention, index: int, mask: Tensor) -> Tensor:
        qkv = _conv1d(x, attention.c_attn).view(len(x), 3, self.heads, self.head_dim)
        query, keys, values = qkv.permute(1, 2, 0, 3)
        keys, values = self.cache.write(index, self.length, keys, values)
        attended = functional.scaled_dot_product_attention(query[None], keys[None], values[None], mask)
        return _conv1d(attended[0].transpose(0, 1).flatten(1), attention.c_proj)


def _conv1d(x: Tensor, layer) -> Tensor:
    return torch.addmm(layer.bias, x, layer.weight)
