"""Llama as a stepper on preallocated caches.

Shapes: n tokens of a step, d the model width, H query heads, G key-value heads, D the head width.
"""

import torch
from torch import Tensor
from torch.nn import functional
from transformers.activations import ACT2FN

from specdec.models.loading import LanguageModel
from specdec.models.stepper import CausalStepper, KVCache, causal_mask, check_fits, rms_norm


class LlamaStepper(CausalStepper):
    """The four verbs for a Llama shape: rotary positions, grouped key-value heads, gated feed-forward."""

    @staticmethod
    def supports(config) -> bool:
        plain = not (getattr(config, "attention_bias", False) or getattr(config, "mlp_bias", False))
        rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
        # A rope that changes with the running length cannot be tabulated once.
        return config.model_type == "llama" and plain and rope not in ("dynamic", "longrope")

    def __init__(self, language_model: LanguageModel, capacity: int):
        super().__init__(language_model.name, capacity)
        model, config = language_model.model, language_model.model.config
        check_fits(self.name, capacity, config.max_position_embeddings)
        body = model.model
        self.embed = body.embed_tokens.weight
        self.device = self.embed.device
        self.head = model.lm_head.weight
        self.final_norm = body.norm.weight
        self.eps = config.rms_norm_eps
        self.activation = ACT2FN[config.hidden_act]
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.layers = [_Layer(layer) for layer in body.layers]
        self.cache = KVCache(len(self.layers), self.kv_heads, capacity, self.head_dim, self.embed)
        self.mask = causal_mask(capacity, self.embed)
        cos, sin = body.rotary_emb(self.embed, torch.arange(capacity, device=self.device)[None])
        self.cos, self.sin = cos[0], sin[0]

    def hidden(self, ids: Tensor) -> Tensor:
        start, end = self.length, self.length + len(ids)
        x = functional.embedding(ids, self.embed)
        cos, sin, mask = self.cos[start:end], self.sin[start:end], self.mask[start:end, :end]
        for index, layer in enumerate(self.layers):
            qkv = functional.linear(rms_norm(x, layer.attention_norm, self.eps), layer.qkv)
            heads = qkv.view(len(x), -1, self.head_dim).transpose(0, 1)
            query, keys, values = heads.split([self.heads, self.kv_heads, self.kv_heads])
            query, keys = _rotate(query, cos, sin), _rotate(keys, cos, sin)
            keys, values = self.cache.write(index, start, keys, values)
            attended = functional.scaled_dot_product_attention(
                query[None], keys[None], values[None], mask, enable_gqa=self.heads != self.kv_heads
            )
            x = x + functional.linear(attended[0].transpose(0, 1).flatten(1), layer.out)
            gate, up = functional.linear(rms_norm(x, layer.ff_norm, self.eps), layer.ff_in).chunk(2, dim=-1)
            x = x + functional.linear(self.activation(gate) * up, layer.ff_out)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(rms_norm(hidden, self.final_norm, self.eps), self.head)


class _Layer:
    """Weights of one block, the projections that share an input joined."""

    def __init__(self, block):
        attention, mlp = block.self_attn, block.mlp
        self.attention_norm = block.input_layernorm.weight
        self.qkv = torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])
        self.out = attention.o_proj.weight
        self.ff_norm = block.post_attention_layernorm.weight
        self.ff_in = torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
        self.ff_out = mlp.down_proj.weight


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin
