"""Token sequences for training, and length-bucketed batches of them.

Shapes: B sequences of a batch, T padded target length, S padded prompt length, K teacher entries a position.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from specdec.errors import UserError
from specdec.files import read_json, read_parquet, sha256_rows
from specdec.models.recipe import Recipe, Schedule
from specdec.models.tokenizer import encode

IGNORED = -100


@dataclass(frozen=True)
class Example:
    """One training sequence. source: prompt ids without end token; target: ids up to and with the end token.

    top_ids, top_probs [len(target), K]: the teacher's largest entries a position, when distilling.
    """

    source: np.ndarray
    target: np.ndarray
    top_ids: np.ndarray | None = None
    top_probs: np.ndarray | None = None


@dataclass(frozen=True)
class Split:
    """Encoded rows of one task's split, and what was left out."""

    examples: list[Example]
    rows: int
    too_long: int
    sha256: str


def data_folders(recipe: Recipe, folders: list[Path]) -> dict[str, Path]:
    """Map the recipe's tasks to data folders. Raises ``UserError`` unless every task has its folder."""
    found = {read_json(folder / "data.json")["task"]: folder for folder in folders}
    for task in recipe.tasks:
        if task not in found:
            raise UserError(
                f"recipe {recipe.name}: no --data folder for task {task!r}; given: {', '.join(found)}"
            )
    return {task: found[task] for task in recipe.tasks}


def load_split(folder: Path, split: str, tokenizer, recipe: Recipe) -> Split:
    """Encode one split of a data folder; raises ``UserError`` when nothing usable is left."""
    frame = read_parquet(folder / f"{split}.parquet")
    sources = encode(tokenizer, frame["prompt"].tolist())
    targets = encode(tokenizer, frame["reference"].tolist())
    end = tokenizer.eos_token_id
    kept = [
        Example(np.asarray(source, np.int32), np.asarray([*target, end], np.int32))
        for source, target in zip(sources, targets, strict=True)
        if len(source) < recipe.max_source_tok and len(target) < recipe.max_target_tok
    ]
    if not kept:
        raise UserError(
            f"{folder / f'{split}.parquet'}: no usable row among {len(frame)} within the recipe's limits"
        )
    return Split(kept, len(frame), len(frame) - len(kept), sha256_rows(frame))


def epoch_order(counts: list[int], passes: list[float], rng: np.random.Generator) -> np.ndarray:
    """Row numbers (tasks laid end to end) of one epoch: whole passes, and a random part for the fraction."""
    rows, start = [], 0
    for count, repeat in zip(counts, passes, strict=True):
        whole = int(repeat)
        rows += [np.arange(start, start + count)] * whole
        part = round((repeat - whole) * count)
        rows.append(start + rng.permutation(count)[:part])
        start += count
    return np.concatenate(rows)


def bucketed_batches(
    order: np.ndarray,
    target_len: np.ndarray,
    source_len: np.ndarray,
    plan: Schedule,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Cut rows into batches of like lengths within the padded token budgets, in random order.

    A row longer than a budget forms a batch of its own.
    """
    jitter = rng.random(len(order))
    ranked = order[np.lexsort((jitter, source_len[order] // 8, target_len[order] // 2))]
    batches, start, longest_target, longest_source = [], 0, 0, 0
    for i, row in enumerate(ranked):
        longest_target = max(longest_target, target_len[row])
        longest_source = max(longest_source, source_len[row])
        size = i - start + 1
        too_much = (
            size * longest_target > plan.batch_target_tok or size * longest_source > plan.batch_source_tok
        )
        if too_much and size > 1:
            batches.append(ranked[start:i])
            start, longest_target, longest_source = i, target_len[row], source_len[row]
    batches.append(ranked[start:])
    return [batches[i] for i in rng.permutation(len(batches))]


class BatchPlan:
    """The batches of a whole run, in order: a function of the data, the plan and the seed alone.

    Serves as a DataLoader's ``batch_sampler``, so a resumed run skips what it has seen without loading it.
    share: (rank, processes) of a data-parallel run; each process takes its part of every batch.
    """

    share = (0, 1)

    def __init__(self, tasks: list[list[Example]], passes: list[float], plan: Schedule, seed: int):
        self._counts, self._passes, self._plan, self._seed = [len(t) for t in tasks], passes, plan, seed
        flat = [example for task in tasks for example in task]
        self._target_len = np.array([len(e.target) for e in flat])
        self._source_len = np.array([len(e.source) + 1 for e in flat])

    def __len__(self) -> int:
        return self._plan.steps

    def __iter__(self):
        left, epoch = self._plan.steps, 0
        while left > 0:
            rng = np.random.default_rng([self._seed, epoch])
            order = epoch_order(self._counts, self._passes, rng)
            batches = bucketed_batches(order, self._target_len, self._source_len, self._plan, rng)
            for batch in batches[:left]:
                rank, processes = self.share
                yield batch[rank::processes].tolist() or batch.tolist()
            epoch, left = epoch + 1, left - len(batches)


class Collator:
    """Pads examples into model inputs; the layout depends on whether the model has an encoder."""

    def __init__(self, kind: str, pad: int, end: int):
        self._kind, self._pad, self._end = kind, pad, end

    @classmethod
    def for_model(cls, model) -> "Collator":
        """The layout that a transformers model expects."""
        config = model.config
        kind = "seq2seq" if config.is_encoder_decoder else "lm"
        return cls(kind, config.pad_token_id, config.eos_token_id)

    def __call__(self, examples: list[Example]) -> dict[str, torch.Tensor]:
        """Model inputs and labels (IGNORED where no token counts); top_ids, top_probs when distilling."""
        batch = self._seq2seq(examples) if self._kind == "seq2seq" else self._decoder_only(examples)
        if examples[0].top_ids is not None:
            # Row-major like labels[labels != IGNORED], so the loss needs no padding of its own.
            batch["top_ids"] = torch.from_numpy(
                np.concatenate([e.top_ids for e in examples]).astype(np.int64)
            )
            batch["top_probs"] = torch.from_numpy(
                np.concatenate([e.top_probs for e in examples]).astype(np.float32)
            )
        return batch

    def _seq2seq(self, examples: list[Example]) -> dict[str, torch.Tensor]:
        source = _pad([[*e.source, self._end] for e in examples], self._pad)
        labels = _pad([e.target for e in examples], IGNORED)
        decoder = _pad([[self._pad, *e.target[:-1]] for e in examples], self._pad)
        mask = _pad([[1] * (len(e.source) + 1) for e in examples], 0)
        return {"input_ids": source, "attention_mask": mask, "decoder_input_ids": decoder, "labels": labels}

    def _decoder_only(self, examples: list[Example]) -> dict[str, torch.Tensor]:
        tokens = _pad([[self._end, *e.source, *e.target[:-1]] for e in examples], self._pad)
        labels = _pad([[*[IGNORED] * len(e.source), *e.target] for e in examples], IGNORED)
        # Padding stands on the right, where a causal model cannot look: no mask is needed.
        return {"input_ids": tokens, "labels": labels}


def _pad(rows: list, value: int) -> torch.Tensor:
    out = torch.full((len(rows), max(map(len, rows))), value, dtype=torch.long)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.from_numpy(np.array(row, np.int64))
    return out
