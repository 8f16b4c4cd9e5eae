"""T5 as a stepper: encoder once a prompt, cross-attention keys once a prompt, preallocated self-attention caches.

Shapes: n tokens of a step, d the model width, H heads, D the head width, S the encoder's positions, T the decoder's.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import ACT2FN

from specdec.errors import UserError
from specdec.models.loading import LanguageModel
from specdec.models.stepper import KVCache, causal_mask, check_fits, rms_norm


class T5Stepper:
    """The four verbs for a T5, relu or gated, tied or untied."""

    @staticmethod
    def supports(config) -> bool:
        return config.model_type == "t5"

    def __init__(self, language_model: LanguageModel, capacity: int):
        model = language_model.model
        config = model.config
        self.name, self.capacity, self.length = language_model.name, capacity, 0
        self.heads, self.head_dim = config.num_heads, config.d_kv
        self.start = config.decoder_start_token_id
        self.encoder = model.get_encoder()
        decoder = model.get_decoder()
        self.embed = decoder.get_input_embeddings().weight
        self.device = self.embed.device
        self.head = model.lm_head.weight
        self.head_scale = config.d_model**-0.5 if config.scale_decoder_outputs else 1.0
        self.eps = config.layer_norm_epsilon
        self.final_norm = decoder.final_layer_norm.weight
        self.layers = [_Layer(block, config) for block in decoder.block]
        self.cross_weight = torch.cat([layer.cross_kv for layer in self.layers])
        self.cache = KVCache(len(self.layers), self.heads, capacity, self.head_dim, self.embed)
        relative = decoder.block[0].layer[0].SelfAttention.compute_bias(capacity, capacity)[0]
        self.bias = relative + causal_mask(capacity, relative)

    def prefill(self, prompt: list[int]) -> list[int]:
        if not prompt:
            raise UserError(f"{self.name}: empty prompt; an encoder needs at least one token")
        self.length = 0
        ids = torch.tensor([prompt], device=self.device)
        memory = self.encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
        flat = functional.linear(memory, self.cross_weight)
        self.cross = flat.view(len(prompt), len(self.layers), 2, self.heads, self.head_dim).permute(
            1, 2, 3, 0, 4
        )
        self.cross = self.cross.contiguous()
        return [self.start]

    def rollback(self, length: int) -> None:
        self.length = min(self.length, length)

    def step(self, tokens: list[int]) -> Tensor:
        start, end = self.length, self.length + len(tokens)
        check_fits(self.name, end, self.capacity)
        x = functional.embedding(torch.tensor(tokens, device=self.device), self.embed)
        bias = self.bias[:, start:end, :end]
        for index, layer in enumerate(self.layers):
            x = self._layer(x, layer, index, bias)
        self.length = end
        x = rms_norm(x, self.final_norm, self.eps)
        return functional.linear(x * self.head_scale if self.head_scale != 1 else x, self.head)

    def _layer(self, x: Tensor, layer: "_Layer", index: int, bias: Tensor) -> Tensor:
        n = x.shape[0]
        qkv = functional.linear(rms_norm(x, layer.self_norm, self.eps), layer.self_qkv)
        query, keys, values = qkv.view(n, 3, self.heads, self.head_dim).permute(1, 2, 0, 3)
        keys, values = self.cache.write(index, self.length, keys, values)
        x = x + self._attend(query, keys, values, bias, layer.self_out)
        query = functional.linear(rms_norm(x, layer.cross_norm, self.eps), layer.cross_q)
        query = query.view(n, self.heads, self.head_dim).transpose(0, 1)
        x = x + self._attend(query, self.cross[index, 0], self.cross[index, 1], None, layer.cross_out)
        return x + layer.feed_forward(rms_norm(x, layer.ff_norm, self.eps))

    @staticmethod
    def _attend(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
        """[H, n, D] against [H, T, D] -> [n, d]; T5 does not scale the scores."""
        attended = functional.scaled_dot_product_attention(
            query[None], keys[None], values[None], None if bias is None else bias[None], scale=1.0
        )
        return functional.linear(attended[0].transpose(0, 1).flatten(1), out)


class _Layer:
    """Weights of one decoder block, the projections that share an input joined."""

    def __init__(self, block: nn.Module, config):
        attention, cross, feed_forward = block.layer
        own, other, dense = attention.SelfAttention, cross.EncDecAttention, feed_forward.DenseReluDense
        self.self_norm = attention.layer_norm.weight
        self.self_qkv = torch.cat([own.q.weight, own.k.weight, own.v.weight])
        self.self_out = own.o.weight
        self.cross_norm = cross.layer_norm.weight
        self.cross_q, self.cross_out = other.q.weight, other.o.weight
        self.cross_kv = torch.cat([other.k.weight, other.v.weight])
        self.ff_norm = feed_forward.layer_norm.weight
        self.activation = ACT2FN[config.dense_act_fn]
        self.gated = config.is_gated_act
        self.ff_in = torch.cat([dense.wi_0.weight, dense.wi_1.weight]) if self.gated else dense.wi.weight
        self.ff_out = dense.wo.weight

    def feed_forward(self, x: Tensor) -> Tensor:
        inner = functional.linear(x, self.ff_in)
        if self.gated:
            gate, up = inner.chunk(2, dim=-1)
            return functional.linear(self.activation(gate) * up, self.ff_out)
        return functional.linear(self.activation(inner), self.ff_out)
