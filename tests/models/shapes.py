"""Tiny random models of every shape the steppers know, with a tokenizer of a few words."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from specdec.models.loading import LanguageModel

WORDS = ["<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(20))]


def tokenizer(words=WORDS) -> PreTrainedTokenizerFast:
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def t5(layers=(1, 2), gated=False, tied=True) -> T5ForConditionalGeneration:
    config = T5Config(
        vocab_size=len(WORDS),
        d_model=16,
        d_ff=24,
        d_kv=8,
        num_heads=3,
        num_layers=layers[0],
        num_decoder_layers=layers[1],
        relative_attention_num_buckets=8,
        relative_attention_max_distance=12,
        feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=tied,
        decoder_start_token_id=0,
        initializer_factor=1.5,
    )
    return T5ForConditionalGeneration(config)


def gpt2() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(WORDS), n_embd=16, n_layer=3, n_head=2, n_positions=64, initializer_range=0.3,
            bos_token_id=1, eos_token_id=1,
        )
    )  # fmt: skip


def llama(kv_heads=2) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS), hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=kv_heads, max_position_embeddings=64, initializer_range=0.3, bos_token_id=1,
            eos_token_id=1,
        )
    )  # fmt: skip


BUILDERS = {
    "t5-relu-tied": lambda: t5(),
    "t5-gated-untied": lambda: t5((2, 1), gated=True, tied=False),
    "gpt2": gpt2,
    "llama-grouped": llama,
    "llama": lambda: llama(4),
}


def language_model(shape: str, seed: int = 0, dtype=torch.float32) -> LanguageModel:
    torch.manual_seed(seed)
    model = BUILDERS[shape]().eval().requires_grad_(False).to(dtype)
    return LanguageModel(shape, model, tokenizer())
