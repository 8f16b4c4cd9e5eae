"""A target and its drafts made ready: loaded, checked against each other, bound to caches of the right size."""

from dataclasses import dataclass

import pandas as pd

from specdec.decoding import ngram
from specdec.decoding.drafts import CopyDraft, Draft, NeuralDraft, NgramDraft
from specdec.errors import UserError
from specdec.models.loading import LanguageModel, check_same_tokens, load_model
from specdec.models.stepper import make_stepper

DRAFT_KINDS = ("neural", "unigram", "bigram", "copy")


@dataclass(frozen=True)
class Backend:
    """Where and how models run. threads: 0 leaves torch's own choice."""

    device: str = "cpu"
    dtype: str = "float32"
    threads: int = 0

    def load(self, path: str) -> LanguageModel:
        return load_model(path, self.dtype, self.device)


@dataclass(frozen=True)
class DraftSpec:
    """Which draft: its name in the study, its kind, and the model folder or table it is read from."""

    name: str
    kind: str
    path: str | None = None

    def __post_init__(self):
        if self.kind not in DRAFT_KINDS:
            raise UserError(f"draft {self.name}: kind {self.kind!r} is unknown; use {', '.join(DRAFT_KINDS)}")
        if (self.path is None) != (self.kind == "copy"):
            need = "takes no path" if self.kind == "copy" else "needs the path of its model or table"
            raise UserError(f"draft {self.name}: a {self.kind} draft {need}")

    @classmethod
    def parse(cls, text: str) -> "DraftSpec":
        """From ``name=kind`` or ``name=kind:path``."""
        name, _, rest = text.partition("=")
        kind, _, path = rest.partition(":")
        return cls(name, kind, path or None)


@dataclass(frozen=True)
class LoadedDraft:
    """A draft read from disk, ready to be bound to caches. model: neural drafts only; table: n-grams only."""

    spec: DraftSpec
    model: LanguageModel | None = None
    table: ngram.NgramTable | None = None

    def bind(self, target: LanguageModel, capacity: int) -> Draft:
        """A draft over ``capacity`` decoder positions."""
        if self.model is not None:
            return NeuralDraft(make_stepper(self.model, capacity), self.model.width)
        return NgramDraft(self.table) if self.table is not None else CopyDraft(target.width)

    def operations_ratio(self, target: LanguageModel) -> float:
        """c_hat of Definition 3.10; tables and copying do no arithmetic worth counting."""
        return self.model.arithmetic_operations() / target.arithmetic_operations() if self.model else 0.0


def load_draft(spec: DraftSpec, target: LanguageModel, backend: Backend) -> LoadedDraft:
    """Read a draft; raises ``UserError`` when it does not share the target's tokens."""
    if spec.kind == "neural":
        model = backend.load(spec.path)
        check_same_tokens(target, model)
        return LoadedDraft(spec, model=model)
    if spec.kind == "copy":
        return LoadedDraft(spec)
    table = ngram.load(spec.path)
    if table.kind != spec.kind or table.width != target.width:
        raise UserError(
            f"{spec.path}: a {table.kind} table of {table.width} tokens, but {spec.kind} of {target.width} is needed;"
            " run the ngram stage for this target"
        )
    return LoadedDraft(spec, table=table)


def capacity_for(model: LanguageModel, prompts: list[list[int]], max_new_tokens: int, gamma: int) -> int:
    """Decoder positions that the longest prompt needs. Raises ``UserError`` when the model has fewer.

    A round verifies up to gamma drafts beyond the last emitted token, and the length cap bounds them.
    """
    prompt = 1 if model.encoder_decoder else max(map(len, prompts))
    needed = prompt + max_new_tokens + gamma
    if model.max_positions and needed > model.max_positions:
        raise UserError(
            f"{model.name}: a prompt of {prompt} tokens, {max_new_tokens} new ones and gamma = {gamma} need {needed}"
            f" positions, the model has {model.max_positions}; shorten the prompts or lower max_new_tokens"
        )
    return needed


def lead_in(frame: pd.DataFrame, words: int) -> pd.DataFrame:
    """Give rows with an empty prompt the first ``words`` words of their reference as prompt.

    At temperature 0 an unconditional model has one single text to give; a lead-in makes the examples differ.
    """
    if words < 1 or not (frame["prompt"] == "").any():
        return frame
    parts = frame["reference"].str.split(" ")
    empty = frame["prompt"] == ""
    return frame.assign(
        prompt=frame["prompt"].where(~empty, parts.str[:words].str.join(" ")),
        reference=frame["reference"].where(~empty, parts.str[words:].str.join(" ")),
    )
