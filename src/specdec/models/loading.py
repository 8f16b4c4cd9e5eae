"""Load a target or a draft, and check that the two speak of the same tokens.

Together with the steppers this is the only place that knows transformers' classes.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedModel,
)
from transformers.utils import logging as hf_logging

from specdec.errors import UserError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

hf_logging.set_verbosity_error()
hf_logging.disable_progress_bar()


@dataclass(frozen=True)
class LanguageModel:
    """A transformers model in evaluation mode with its tokenizer. name: the path or hub id it came from."""

    name: str
    model: PreTrainedModel
    tokenizer: object

    @property
    def encoder_decoder(self) -> bool:
        return bool(self.model.config.is_encoder_decoder)

    @property
    def width(self) -> int:
        """Number of logits, padding entries included."""
        return self.model.get_output_embeddings().weight.shape[0]

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """Ids that end a text: the generation config's, else the tokenizer's."""
        eos = self.model.generation_config.eos_token_id
        if eos is None:
            eos = self.tokenizer.eos_token_id
        if eos is None:
            return frozenset()
        return frozenset(eos if isinstance(eos, list) else [eos])

    @property
    def max_positions(self) -> int | None:
        """Longest sequence the positions allow, or None where they are relative (T5)."""
        return None if self.encoder_decoder else getattr(self.model.config, "max_position_embeddings", None)

    def encode(self, prompt: str) -> list[int]:
        """Token ids of a prompt as the model expects it.

        An encoder gets the tokenizer's own end token; a decoder-only model starts with its BOS (or, lacking one, its
        end token), so that an empty prompt is an unconditional sample.
        """
        if self.encoder_decoder:
            return self.tokenizer(prompt).input_ids
        start = self.tokenizer.bos_token_id
        start = self.tokenizer.eos_token_id if start is None else start
        ids = self.tokenizer(prompt, add_special_tokens=False).input_ids if prompt else []
        return ids if start is None or ids[:1] == [start] else [start, *ids]

    def training_sequences(self, texts: list[str]) -> list[list[int]]:
        """Decoder sequences of whole texts, from the start token to the end token, as n-gram tables count them."""
        start = self.model.config.decoder_start_token_id if self.encoder_decoder else self.encode("")[0]
        ids = self.tokenizer(texts, add_special_tokens=False).input_ids
        return [[start, *row, self.tokenizer.eos_token_id] for row in ids]

    def decode(self, tokens: list[int]) -> str:
        """Text of generated tokens, special ones left out; ids past the tokenizer's map are skipped."""
        known = len(self.tokenizer)
        return self.tokenizer.decode([token for token in tokens if token < known], skip_special_tokens=True)

    def arithmetic_operations(self) -> float:
        """Multiply-adds of one decoded token, dominated by the weights it touches (the ratio of two is c_hat).

        An encoder runs once a prompt and an embedding is a look-up: neither counts. A tied head does.
        """
        skipped = ("encoder.", "shared.", "embed_tokens.", "wte.", "wpe.", "embed_positions.")
        weights = sum(p.numel() for n, p in self.model.named_parameters() if not any(s in n for s in skipped))
        head = self.model.get_output_embeddings().weight
        tied = head is self.model.get_input_embeddings().weight
        return float(weights + (head.numel() if tied else 0))


def load_model(
    path: str, dtype: str = "float32", device: str = "cpu", revision: str | None = None
) -> LanguageModel:
    """Load a folder or a hub id with safetensors weights.

    Raises ``UserError`` when nothing is there, a file is broken, or the dtype does not suit the model (T5 overflows
    in float16).
    """
    _check_folder(path)
    try:
        config = AutoConfig.from_pretrained(path, revision=revision)
        if dtype == "float16" and config.model_type in ("t5", "mt5", "umt5"):
            raise UserError(f"{path}: dtype float16 overflows in T5; use bfloat16 or float32")
        auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        tokenizer = AutoTokenizer.from_pretrained(path, revision=revision)
        model = auto.from_pretrained(path, revision=revision, dtype=DTYPES[dtype], use_safetensors=True)
    except UserError:
        raise
    except KeyError:
        raise UserError(f"dtype {dtype!r} is unknown; use one of {', '.join(DTYPES)}") from None
    except Exception as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"{path}: cannot load a model from here: {first_line}") from error
    model.requires_grad_(False)
    return LanguageModel(str(path), model.eval().to(device), tokenizer)


def _check_folder(path: str) -> None:
    looks_local = os.sep in path and (path.startswith((".", "/", "~")) or path.count("/") > 1)
    if Path(path).is_dir():
        if not (Path(path) / "config.json").is_file():
            raise UserError(
                f"{path}: no config.json in this model folder; give a folder saved by save_pretrained"
            )
    elif looks_local:
        raise UserError(f"{path}: no such model folder; train it or correct the path")


def check_same_tokens(target: LanguageModel, draft: LanguageModel) -> None:
    """Refuse a draft whose token map differs from the target's: swapped ids would only lower acceptance, silently.

    Logit widths may differ (padding). Raises ``UserError`` that names the first id whose token differs.
    """
    if target.encoder_decoder != draft.encoder_decoder:
        raise UserError(
            f"{draft.name}: draft and target {target.name} must both be encoder-decoders or neither"
        )
    ours, theirs = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
    if ours == theirs:
        return
    by_id, by_id_draft = ({i: t for t, i in vocab.items()} for vocab in (ours, theirs))
    for token_id in sorted(by_id.keys() | by_id_draft.keys()):
        a, b = by_id.get(token_id), by_id_draft.get(token_id)
        if a != b:
            raise UserError(
                f"{draft.name}: token {token_id} is {b!r} here but {a!r} in the target {target.name};"
                " draft and target must share one token map"
            )
