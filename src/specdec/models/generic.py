"""Any transformers model as a stepper, through its own forward: slower than the lean ones, and their test oracle."""

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache

from specdec.errors import UserError
from specdec.models.loading import LanguageModel
from specdec.models.stepper import check_fits


class GenericStepper:
    """The four verbs over ``forward`` and a cropped ``DynamicCache``."""

    def __init__(self, language_model: LanguageModel, capacity: int):
        self.name, self.capacity = language_model.name, capacity
        self.model = language_model.model
        self.encoder_decoder = language_model.encoder_decoder
        self.device = self.model.device
        if language_model.max_positions:
            check_fits(self.name, capacity, language_model.max_positions)

    @property
    def length(self) -> int:
        return self.cache.get_seq_length()

    def prefill(self, prompt: list[int]) -> list[int]:
        if not prompt:
            raise UserError(
                f"{self.name}: empty prompt and no start token; give the prompt at least one token"
            )
        self.cache = DynamicCache()
        if self.encoder_decoder:
            self.cache = EncoderDecoderCache(self.cache, DynamicCache())
            self.attention_mask = torch.ones(1, len(prompt), dtype=torch.long, device=self.device)
            ids = torch.tensor([prompt], device=self.device)
            self.memory = self.model.get_encoder()(input_ids=ids, attention_mask=self.attention_mask)
            return [self.model.config.decoder_start_token_id]
        check_fits(self.name, len(prompt), self.capacity)
        if len(prompt) > 1:
            self._forward(prompt[:-1])
        return list(prompt)

    def step(self, tokens: list[int]) -> Tensor:
        check_fits(self.name, self.length + len(tokens), self.capacity)
        return self._forward(tokens)

    def rollback(self, length: int) -> None:
        if length < self.length:
            own = self.cache.self_attention_cache if self.encoder_decoder else self.cache
            own.crop(length - self.length)

    def _forward(self, tokens: list[int]) -> Tensor:
        ids = torch.tensor([tokens], device=self.device)
        if not self.encoder_decoder:
            return self.model(input_ids=ids, cache=self.cache, use_cache=True).logits[0]
        return self.model(
            encoder_outputs=self.memory,
            attention_mask=self.attention_mask,
            decoder_input_ids=ids,
            cache=self.cache,
            use_cache=True,
        ).logits[0]
