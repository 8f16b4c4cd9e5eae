"""The training stage: data and recipe in, a model folder out."""

import dataclasses
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec.errors import UserError
from specdec.files import read_json, sha256_file
from specdec.models.build import build_model, load_model, start_from_teacher
from specdec.models.distill import DevAlpha, fingerprint, teacher_examples
from specdec.models.examples import BatchPlan, Collator, Example, Split, data_folders, load_split
from specdec.models.export import export_model
from specdec.models.losses import data_loss, distillation_loss
from specdec.models.recipe import Recipe
from specdec.models.tokenizer import check_same_tokenizer, load_tokenizer
from specdec.models.trainer import RecipeTrainer, drop_checkpoints, find_checkpoint

DEV_ROWS = 384
DEV_BATCH = 32


@dataclass(frozen=True)
class Inputs:
    """Everything a run is made of, loaded and checked."""

    recipe: Recipe
    tokenizer: PreTrainedTokenizerFast
    tokenizer_sha256: str
    folders: dict[str, Path]
    train: dict[str, Split]
    dev: dict[str, Split]
    teacher_sha256: str | None


def load_inputs(recipe: Recipe, data: list[Path], tokenizer: Path, teacher: Path | None) -> Inputs:
    """Load and check; raises ``UserError`` on missing tasks, empty data, or a teacher's other tokenizer."""
    if (recipe.distillation is None) != (teacher is None):
        need = (
            "has a distillation section: give --teacher"
            if recipe.distillation
            else "has none: drop --teacher"
        )
        raise UserError(f"recipe {recipe.name} {need} (or change the recipe's distillation section)")
    tokens = load_tokenizer(tokenizer)
    if teacher is not None:
        check_same_tokenizer(tokenizer, teacher)
        if not (teacher / "model.safetensors").is_file():
            raise UserError(f"{teacher}/model.safetensors: no such file; train the teacher first")
    folders = data_folders(recipe, data)
    splits = {
        split: {task: load_split(folder, split, tokens, recipe) for task, folder in folders.items()}
        for split in ("train", "dev")
    }
    return Inputs(
        recipe,
        tokens,
        sha256_file(tokenizer / "tokenizer.json"),
        folders,
        splits["train"],
        splits["dev"],
        sha256_file(teacher / "model.safetensors") if teacher else None,
    )


def run_key(inputs: Inputs) -> str:
    """Names a run: all that its weights depend on, except how long it is and how often it is measured."""
    recipe = asdict(inputs.recipe)
    for key in ("steps", "decay_steps", "eval_every"):
        del recipe["schedule"][key]
    for key in ("comment", "name", "bleu_task"):
        del recipe[key]
    hashes = {task: split.sha256 for task, split in inputs.train.items()}
    return fingerprint(recipe, hashes, inputs.tokenizer_sha256, inputs.teacher_sha256)


def train_model(recipe: Recipe, data: list[Path], tokenizer: Path, teacher: Path | None, out: Path) -> None:
    """Train and write ``out`` whole; resumes what a killed run of the same inputs left in ``.<name>.work``.

    Raises ``UserError`` on bad input before anything is written.
    """
    inputs = load_inputs(recipe, data, tokenizer, teacher)
    work = out.parent / f".{out.name}.work" / run_key(inputs)
    teacher_model = load_model(teacher) if teacher else None
    torch.manual_seed(recipe.seed)
    model = build_model(recipe, inputs.tokenizer)
    if teacher_model is not None and recipe.distillation.init == "teacher":
        start_from_teacher(model, teacher_model)
    examples = _training_examples(inputs, teacher_model, out.parent / ".teacher-text")
    measure = _dev_measure(inputs, teacher_model)
    batches = BatchPlan(list(examples.values()), list(recipe.tasks.values()), recipe.schedule, recipe.seed)
    flat = [example for task in examples.values() for example in task]
    trainer = RecipeTrainer(model, flat, batches, recipe.schedule, _loss(recipe), measure, work)
    checkpoint = find_checkpoint(work, recipe.schedule)
    tokens = {task: int(sum(len(e.target) for e in rows)) for task, rows in examples.items()}
    _say(f"{recipe.name}: {model.num_parameters():,} parameters, {tokens} target tokens an epoch's pass")
    if checkpoint:
        _say(f"{recipe.name}: resuming from {checkpoint}")
    trainer.run(checkpoint)
    if trainer.is_world_process_zero():
        export_model(trainer.model, inputs, trainer.loss_curve(), measure, _data_facts(inputs, tokens), out)
        drop_checkpoints(work)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _loss(recipe: Recipe):
    plan, smoothing = recipe.distillation, recipe.schedule.label_smoothing
    if plan is None:
        return lambda logits, batch: data_loss(logits, batch["labels"], smoothing)
    return lambda logits, batch: distillation_loss(
        logits, batch["labels"], batch["top_ids"], batch["top_probs"], plan
    )


def _training_examples(
    inputs: Inputs, teacher: PreTrainedModel | None, cache: Path
) -> dict[str, list[Example]]:
    if teacher is None:
        return {task: split.examples for task, split in inputs.train.items()}
    recipe = inputs.recipe
    sampling = {k: v for k, v in asdict(recipe.distillation).items() if k in _SAMPLING_KEYS}
    examples = {}
    for task, split in inputs.train.items():
        key = fingerprint(sampling, split.sha256, inputs.tokenizer_sha256, inputs.teacher_sha256, recipe.seed,
                          recipe.max_source_tok, recipe.max_target_tok)  # fmt: skip
        examples[task] = teacher_examples(
            cache, key, teacher, split.examples, recipe.distillation, recipe.max_target_tok, recipe.seed
        )
    return examples


_SAMPLING_KEYS = ("sampled", "greedy", "data", "teacher_top_k", "max_prompts")


def _dev_measure(inputs: Inputs, teacher: PreTrainedModel | None):
    """A function of the model that returns its dev metrics by split."""
    recipe = inputs.recipe
    if teacher is None:
        rows = {task: _some(split.examples, DEV_ROWS) for task, split in inputs.dev.items()}
        return lambda model: {f"dev:{task}": {"loss": dev_loss(model, some)} for task, some in rows.items()}
    scorers = {
        task: DevAlpha.prepare(
            teacher,
            _some(split.examples, recipe.distillation.dev_prompts),
            recipe.max_target_tok,
            recipe.seed,
        )
        for task, split in inputs.dev.items()
    }
    return lambda model: {f"dev:{task}": scorer.measure(model) for task, scorer in scorers.items()}


def _some(rows: list[Example], count: int) -> list[Example]:
    """Evenly spaced rows, ``count`` at most."""
    if len(rows) <= count:
        return rows
    return [rows[i] for i in np.linspace(0, len(rows) - 1, count).astype(int)]


@torch.no_grad()
def dev_loss(model: PreTrainedModel, rows: list[Example]) -> float:
    """Cross entropy a target token over ``rows``, in nats."""
    collate = Collator.for_model(model)
    rows = sorted(rows, key=lambda row: len(row.target))
    total, tokens = 0.0, 0
    for start in range(0, len(rows), DEV_BATCH):
        part = [
            dataclasses.replace(row, top_ids=None, top_probs=None) for row in rows[start : start + DEV_BATCH]
        ]
        batch = collate(part)
        labels = batch.pop("labels")
        count = sum(len(row.target) for row in part)
        total += float(data_loss(model(**batch).logits, labels)) * count
        tokens += count
    return total / tokens


def _data_facts(inputs: Inputs, tokens: dict[str, int]) -> dict:
    """What ``training.json`` says about the data of each task."""
    facts = {}
    for task, folder in inputs.folders.items():
        described, split = read_json(folder / "data.json"), inputs.train[task]
        facts[task] = {
            "rows": split.rows,
            "rows_too_long": split.too_long,
            "sha256": split.sha256,
            "target_tok": tokens[task],
            "passes": inputs.recipe.tasks[task],
            "sources": described.get("sources", []),
            "revision": described.get("revision"),
        }
    return facts
