"""Fresh models from a recipe's shape, and trained ones as training needs them (teacher, dev loss, BLEU)."""

from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from specdec.errors import UserError
from specdec.models.recipe import Recipe


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """A randomly initialised float32 model of the recipe's shape; the caller seeds torch.

    Raises ``UserError`` on a key that the architecture's configuration does not know.
    """
    shape = dict(recipe.architecture)
    kind = shape.pop("type")
    known = AutoConfig.for_model(kind).to_dict()
    for key in shape:
        if key not in known and key not in AutoConfig.for_model(kind).attribute_map:
            raise UserError(
                f"recipe {recipe.name}: architecture.{key}: no such key in the {kind} configuration"
            )
    config = AutoConfig.for_model(kind, **shape, **_token_ids(kind, tokenizer))
    auto = AutoModelForSeq2SeqLM if recipe.kind == "seq2seq" else AutoModelForCausalLM
    return auto.from_config(config, dtype=torch.float32)


def _token_ids(kind: str, tokenizer: PreTrainedTokenizerFast) -> dict:
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    start = {"decoder_start_token_id": pad} if kind == "t5" else {"bos_token_id": end}
    return {"vocab_size": len(tokenizer), "pad_token_id": pad, "eos_token_id": end, **start}


def generation_config(
    recipe: Recipe, tokenizer: PreTrainedTokenizerFast, max_new_tokens: int
) -> GenerationConfig:
    """What a reader of the model folder needs to decode it."""
    return GenerationConfig(
        max_new_tokens=max_new_tokens, **_drop_size(_token_ids(recipe.architecture["type"], tokenizer))
    )


def _drop_size(ids: dict) -> dict:
    return {key: value for key, value in ids.items() if key != "vocab_size"}


def load_model(folder: str | Path) -> PreTrainedModel:
    """A trained model in float32, in evaluation mode. Raises ``UserError`` when the folder holds none."""
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: no config.json; name a whole model folder")
    config = AutoConfig.from_pretrained(folder)
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    return auto.from_pretrained(folder, dtype=torch.float32).eval()


@torch.no_grad()
def start_from_teacher(student: PreTrainedModel, teacher: PreTrainedModel) -> None:
    """Start the student's token embeddings at the principal directions of the teacher's, at its own scale.

    [V, d_teacher] -> [V, d_student]; tokens that the teacher holds alike start alike.
    """
    ours, theirs = student.get_input_embeddings().weight, teacher.get_input_embeddings().weight
    scale = ours.std()
    centred = theirs - theirs.mean(dim=0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    d = min(ours.shape[1], u.shape[1])
    projected = u[:, :d] * s[:d]
    ours[:, :d] = projected * (scale / projected.std())
