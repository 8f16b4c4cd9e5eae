"""Training recipes: one YAML file a model or tokenizer, checked key by key before anything heavy loads."""

import dataclasses
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from specdec.errors import UserError

ARCHITECTURES = {"t5": "seq2seq", "gpt2": "lm", "llama": "lm"}


@dataclass(frozen=True)
class TokenizerRecipe:
    """A tokenizer trained on the training text of ``tasks`` (empty: of every data folder given)."""

    name: str
    kind: str = "unigram"
    vocab_size: int = 4000
    tasks: tuple[str, ...] = ()
    max_piece_length: int = 16


@dataclass(frozen=True)
class Schedule:
    """Budget and optimiser. The rate warms up, stays, and decays over the last ``decay_steps``.

    A run can be made longer later: ``steps`` is no part of a run's identity, and the state before the decay
    is kept. batch_target_tok: padded target tokens of a batch, at most; batch_source_tok: the same for the
    prompts. embedding_rate: factor on ``learning_rate`` for the token embeddings.
    """

    steps: int
    warmup_steps: int
    decay_steps: int
    batch_target_tok: int = 1024
    batch_source_tok: int = 4096
    learning_rate: float = 1e-3
    embedding_rate: float = 4.0
    weight_decay: float = 0.01
    beta2: float = 0.98
    clip: float = 1.0
    label_smoothing: float = 0.0
    eval_every: int = 500


@dataclass(frozen=True)
class Distillation:
    """How a draft learns from its teacher: on text the teacher generated, with the teacher's distributions.

    sampled, greedy, data: passes over the prompts with text sampled at temperature 1, with greedy text, and
    with the reference text (fractions allowed). kl, tv, argmax: weights of KL(p || q), of the total
    variation 1 - beta (Theorem 3.5), and of the cross entropy to the teacher's argmax. teacher_top_k:
    entries of p kept a position; the rest is one bucket. dev_prompts: held-out prompts on which alpha is
    logged. init: "teacher" starts the token embeddings at the principal directions of the teacher's.
    """

    sampled: float = 1.0
    greedy: float = 0.5
    data: float = 0.0
    kl: float = 1.0
    tv: float = 1.0
    argmax: float = 0.0
    teacher_top_k: int = 64
    max_prompts: int = 0
    dev_prompts: int = 128
    init: str = "random"


@dataclass(frozen=True)
class Recipe:
    """A model: its shape, its data, its budget.

    architecture: ``type`` (t5, gpt2 or llama) and keys of that configuration class in transformers.
    tasks: passes over each task's training rows in one epoch (fractions allowed).
    Rows with longer prompts or targets than the limits are left out, and counted in ``training.json``.
    bleu_task: task on whose test set the finished model's greedy BLEU is measured.
    """

    name: str
    architecture: dict
    tasks: dict[str, float]
    schedule: Schedule
    seed: int = 1
    max_source_tok: int = 384
    max_target_tok: int = 256
    distillation: Distillation | None = None
    bleu_task: str | None = None
    comment: str = field(default="", compare=False)

    @property
    def kind(self) -> str:
        """ "seq2seq" (prompt in an encoder) or "lm" (decoder only)."""
        return ARCHITECTURES[self.architecture["type"]]


def load_recipe(path: str | Path) -> Recipe:
    """Read and check a model's recipe. Raises ``UserError`` naming the file and the key at fault."""
    recipe = _build(Recipe, _read_mapping(path), str(path))
    _check_model(recipe, str(path))
    return recipe


def load_tokenizer_recipe(path: str | Path) -> TokenizerRecipe:
    """Read and check a tokenizer's recipe. Raises ``UserError`` naming the file and the key at fault."""
    recipe = _build(TokenizerRecipe, _read_mapping(path), str(path))
    if recipe.kind != "unigram":
        raise UserError(f"{path}: kind = {recipe.kind!r}: only 'unigram' is known")
    if recipe.vocab_size < 64:
        raise UserError(f"{path}: vocab_size = {recipe.vocab_size}: use 64 or more")
    return recipe


def _read_mapping(path: str | Path) -> dict:
    try:
        value = yaml.safe_load(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML ({error})") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: a recipe is a mapping of keys to values")
    return value


def _build(cls, values: dict, where: str):
    """Fill a recipe dataclass from plain YAML values: unknown, missing and mistyped keys are refused."""
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in values:
        if key not in fields:
            raise UserError(f"{where}: unknown key {key!r}; known: {', '.join(fields)}")
    for name, spec in fields.items():
        if name not in values and spec.default is spec.default_factory is dataclasses.MISSING:
            raise UserError(f"{where}: key {name!r} is missing")
    return cls(**{key: _convert(hints[key], value, f"{where}: {key}") for key, value in values.items()})


def _convert(hint, value, where: str):
    if isinstance(hint, types.UnionType):
        return None if value is None else _convert(hint.__args__[0], value, where)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise UserError(f"{where} = {value!r}: a mapping is needed")
        return _build(hint, value, where)
    origin = typing.get_origin(hint) or hint
    if origin is tuple and isinstance(value, list):
        return tuple(value)
    if origin is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if origin is float and isinstance(value, str):
        raise UserError(f"{where} = {value!r}: a number is needed (YAML wants 1.0e-3, with the dot)")
    if not isinstance(value, origin) or (origin is int and isinstance(value, bool)):
        raise UserError(f"{where} = {value!r}: a value of type {origin.__name__} is needed")
    return value


def _check_model(recipe: Recipe, where: str) -> None:
    kind = recipe.architecture.get("type")
    if kind not in ARCHITECTURES:
        raise UserError(f"{where}: architecture.type = {kind!r}: use one of {', '.join(ARCHITECTURES)}")
    if not recipe.tasks:
        raise UserError(f"{where}: tasks is empty; name at least one task and its passes an epoch")
    for task, passes in recipe.tasks.items():
        if isinstance(passes, bool) or not isinstance(passes, int | float) or passes <= 0:
            raise UserError(f"{where}: tasks.{task} = {passes!r}: passes an epoch must be a positive number")
    plan = recipe.schedule
    positive = ("steps", "batch_target_tok", "batch_source_tok", "eval_every", "learning_rate")
    for key in positive:
        if getattr(plan, key) <= 0:
            raise UserError(f"{where}: schedule.{key} = {getattr(plan, key)}: a positive number is needed")
    if min(plan.warmup_steps, plan.decay_steps) < 0 or plan.warmup_steps + plan.decay_steps > plan.steps:
        raise UserError(f"{where}: schedule: warmup_steps + decay_steps must lie within steps = {plan.steps}")
    if recipe.distillation:
        _check_distillation(recipe.distillation, where)


def _check_distillation(plan: Distillation, where: str) -> None:
    for key in ("sampled", "greedy", "data", "kl", "tv", "argmax", "max_prompts"):
        if getattr(plan, key) < 0:
            raise UserError(f"{where}: distillation.{key} = {getattr(plan, key)}: must not be negative")
    if plan.sampled + plan.greedy + plan.data <= 0 or plan.kl + plan.tv + plan.argmax <= 0:
        raise UserError(f"{where}: distillation: some text and some loss must have a positive weight")
    if plan.teacher_top_k < 1 or plan.dev_prompts < 1:
        raise UserError(f"{where}: distillation: teacher_top_k and dev_prompts must be 1 or more")
    if plan.init not in ("random", "teacher"):
        raise UserError(f"{where}: distillation.init = {plan.init!r}: use 'random' or 'teacher'")
