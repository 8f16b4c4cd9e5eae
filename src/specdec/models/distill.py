"""Teacher text: what a draft is distilled on, generated once and kept with the teacher's distributions."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from tqdm import tqdm
from transformers import PreTrainedModel

from specdec.acceptance import overlap
from specdec.files import atomic_path
from specdec.models.examples import IGNORED, Collator, Example
from specdec.models.generate import Generated, generate
from specdec.models.recipe import Distillation

SCORING_BATCH = 64


def fingerprint(*parts) -> str:
    """A short hash of plain values: names what a run or a cache depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def teacher_examples(
    cache: Path,
    key: str,
    teacher: PreTrainedModel,
    rows: list[Example],
    plan: Distillation,
    limit: int,
    seed: int,
) -> list[Example]:
    """The training examples of one task, read from ``cache/key`` or generated there.

    rows: the task's data; their prompts are continued by the teacher, at most ``limit`` tokens each. Drafts
    of one teacher with the same plan share the cache.
    """
    folder = cache / key
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{key}.lock"):
        if not folder.is_dir():
            examples = _generate_examples(teacher, rows, plan, limit, seed)
            with atomic_path(folder) as temporary:
                _store(temporary, examples)
    return _load(folder)


def _generate_examples(
    teacher: PreTrainedModel, rows: list[Example], plan: Distillation, limit: int, seed: int
) -> list[Example]:
    rng = np.random.default_rng(seed)
    if plan.max_prompts and len(rows) > plan.max_prompts:
        rows = [rows[i] for i in rng.choice(len(rows), plan.max_prompts, replace=False)]
    examples = []
    for temperature, passes in ((1.0, plan.sampled), (0.0, plan.greedy)):
        prompts = [rows[i].source for i in _passes(len(rows), passes, rng)]
        if temperature == 0:
            # Greedy text of a prompt is always the same: once is enough.
            prompts = list({prompt.tobytes(): prompt for prompt in prompts}.values())
        with tqdm(total=len(prompts), desc=f"teacher text, T={temperature:g}", mininterval=15) as bar:
            texts = generate(
                teacher,
                prompts,
                temperature=temperature,
                max_new_tokens=limit,
                seed=seed,
                top_k=plan.teacher_top_k,
                on_batch=bar.update,
            )
        examples += [_example(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
    chosen = [rows[i] for i in _passes(len(rows), plan.data, rng)]
    return examples + score(teacher, chosen, plan.teacher_top_k)


def _passes(count: int, passes: float, rng: np.random.Generator) -> list[int]:
    whole = int(passes)
    part = rng.permutation(count)[: round((passes - whole) * count)]
    return [*range(count)] * whole + part.tolist()


def _example(prompt: np.ndarray, text: Generated) -> Example:
    return Example(
        prompt,
        np.asarray(text.tokens, np.int32),
        np.stack(text.top_ids).astype(np.int32),
        np.stack(text.top_probs).astype(np.float16),
    )


@torch.no_grad()
def score(teacher: PreTrainedModel, rows: list[Example], top_k: int) -> list[Example]:
    """The teacher's distributions along given text: the rows with top_ids, top_probs [len(target), top_k]."""
    collate = Collator.for_model(teacher)
    top_k = min(top_k, teacher.config.vocab_size)
    scored: list[Example] = list(rows)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].target))
    for start in range(0, len(order), SCORING_BATCH):
        index = order[start : start + SCORING_BATCH]
        batch = collate([rows[i] for i in index])
        labels = batch.pop("labels")
        top = teacher(**batch).logits[labels != IGNORED].float().softmax(-1).topk(top_k)
        lengths = [len(rows[i].target) for i in index]
        for i, ids, probs in zip(index, top.indices.split(lengths), top.values.split(lengths), strict=True):
            row = rows[i]
            scored[i] = Example(
                row.source, row.target, ids.numpy().astype(np.int32), probs.numpy().astype(np.float16)
            )
    return scored


_ARRAYS = ("source", "target", "top_ids", "top_probs")


def _store(folder: Path, examples: list[Example]) -> None:
    folder.mkdir()
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", np.concatenate([getattr(e, name) for e in examples]))
    lengths = np.array([[len(e.source), len(e.target)] for e in examples])
    np.save(folder / "lengths.npy", lengths)


def _load(folder: Path) -> list[Example]:
    source_ends, target_ends = np.load(folder / "lengths.npy").cumsum(axis=0).T
    source, target, top_ids, top_probs = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS)
    source_starts, target_starts = (np.concatenate([[0], ends[:-1]]) for ends in (source_ends, target_ends))
    return [
        Example(source[a:b], target[c:d], top_ids[c:d], top_probs[c:d])
        for a, b, c, d in zip(source_starts, source_ends, target_starts, target_ends, strict=True)
    ]


@dataclass(frozen=True)
class DevAlpha:
    """alpha (Corollary 3.6) of a draft on held-out prompts of one task, along text its teacher generated.

    sampled, greedy: the texts at T = 1 and T = 0. p_sampled: the teacher's full distributions [N, V] along
    the former.
    """

    sampled: list[Example]
    greedy: list[Example]
    p_sampled: torch.Tensor

    @classmethod
    def prepare(cls, teacher: PreTrainedModel, rows: list[Example], limit: int, seed: int) -> "DevAlpha":
        """Let the teacher continue each row's prompt at both temperatures."""
        texts = []
        for temperature in (1.0, 0.0):
            prompts = [row.source for row in rows]
            if temperature == 0:
                prompts = list({prompt.tobytes(): prompt for prompt in prompts}.values())
            out = generate(teacher, prompts, temperature=temperature, max_new_tokens=limit, seed=seed + 1)
            texts.append(
                [Example(p, np.asarray(t.tokens, np.int32)) for p, t in zip(prompts, out, strict=True)]
            )
        return cls(
            texts[0], texts[1], torch.cat([logits.softmax(-1) for logits, _ in _logits(teacher, texts[0])])
        )

    def measure(self, draft: PreTrainedModel) -> dict[str, float]:
        """alpha_t1: mean sum_x min(p, q); alpha_t0: share of greedy tokens that are q's argmax; loss: KL."""
        q = torch.cat([logits.log_softmax(-1) for logits, _ in _logits(draft, self.sampled)])
        log_p = self.p_sampled.clamp_min(1e-12).log()
        hits = torch.cat([logits.argmax(-1) == labels for logits, labels in _logits(draft, self.greedy)])
        return {
            "loss": float((self.p_sampled * (log_p - q)).sum(-1).mean()),
            "alpha_t1": float(overlap(self.p_sampled, q.exp()).mean()),
            "alpha_t0": float(hits.float().mean()),
        }


@torch.no_grad()
def _logits(model: PreTrainedModel, rows: list[Example]):
    """Yield (logits [n, V], labels [n]) of the counted positions, batch by batch in row order."""
    collate = Collator.for_model(model)
    for start in range(0, len(rows), SCORING_BATCH):
        batch = collate(rows[start : start + SCORING_BATCH])
        labels = batch.pop("labels")
        counted = labels != IGNORED
        yield model(**batch).logits[counted].float(), labels[counted]
