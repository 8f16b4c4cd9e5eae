"""A small study on disk, by the library's own writers: fixed numbers, every file that a summary reads."""

import random
from itertools import product
from pathlib import Path

import pandas as pd

from specdec.files import write_json, write_parquet
from specdec.records import BASELINE, SPECULATIVE, ExampleRecord, Round, write_records

PROVENANCE = {
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "versions": {"python": "3.11.9", "torch": "2.13.0", "datasets": None},
    "hardware": {"cpu": "Test_CPU", "cores": 2},
}
TARGET_S = {1: 0.010, 2: 0.0104, 3: 0.0108, 4: 0.0112}
DRAFT_C = {"seq2seq-small": 0.05, "unigram": 0.01, "copy": 0.005}
ALPHA = {"seq2seq-small": 0.7, "unigram": 0.1, "copy": 0.3}
TASKS = {
    "ende": ("bleu", ["Das Haus ist rot.", "Ein Test ist gut.", "Wir gehen heute nach Hause.", "Es regnet."]),
    "docsum": ("rouge", ["Return the sum. It is fast.", "Sort a list in place.", "Read a file.", "Open it."]),
}
TARGET = "seq2seq-target"
EXAMPLES, LENGTHS = 4, (24, 32, 40, 17)


def build_study(folder: Path) -> Path:
    """Two tasks, three drafts, two temperatures, gamma 1 and 3: 24 cells."""
    for task, draft, temperature, gamma in product(TASKS, DRAFT_C, (0, 1), (1, 3)):
        build_cell(folder, task, draft, temperature, gamma)
    for task, temperature in product(TASKS, (0, 1)):
        build_samples(folder, task, temperature)
    for task in TASKS:
        build_overlap(folder, task)
        build_cost(folder, task)
    return folder


def build_one_cell(folder: Path) -> Path:
    """The cell ende, seq2seq-small, temperature 0, gamma 3, and what its summary needs."""
    build_samples(folder, "ende", 0)
    build_overlap(folder, "ende")
    build_cost(folder, "ende")
    return build_cell(folder, "ende", "seq2seq-small", 0, 3)


def build_cell(
    folder: Path, task: str, draft: str, temperature: float, gamma: int, filters: str = ""
) -> Path:
    metric, references = TASKS[task]
    cell = folder / "cells" / task / TARGET / draft / f"t{temperature}-g{gamma}{filters}"
    draw = random.Random(f"{task} {draft} {temperature} {gamma}")
    records = []
    for i in range(EXAMPLES):
        for arm in (BASELINE, SPECULATIVE):
            length = LENGTHS[i] + (temperature * (3 if arm == SPECULATIVE else 0))
            records.append(record(draw, f"{task}-{i}", arm, length, draft, gamma, references[i]))
    write_records(cell / "records.parquet", records)
    run = {
        "study": "test",
        "task": task,
        "target": TARGET,
        "draft": draft,
        "draft_kind": draft if draft in ("unigram", "copy") else "neural",
        "gamma": gamma,
        "temperature": temperature,
        "top_k": None,
        "top_p": None,
        "seed": 1,
        "dtype": "float32",
        "device": "cpu",
        "threads": 2,
        "metric": metric,
        "max_new_tokens": 64,
        "purpose": "timed",
        "provenance": PROVENANCE,
    }
    write_json(cell / "run.json", run)
    return cell


def record(
    draw, example: str, arm: str, length: int, draft: str, gamma: int, reference: str
) -> ExampleRecord:
    rounds, seconds, left = [], 0.012, length
    if arm == BASELINE:
        seconds += length * TARGET_S[1] * draw.uniform(0.97, 1.03)
    while arm == SPECULATIVE and left:
        drafted = min(gamma, left - 1)
        accepted = next((n for n in range(drafted) if draw.random() >= ALPHA[draft]), drafted)
        rounds.append(Round(drafted, accepted, accepted + 1))
        left -= accepted + 1
        seconds += (drafted * DRAFT_C[draft] * TARGET_S[1] + TARGET_S[drafted + 1]) * draw.uniform(0.97, 1.03)
    text = reference.replace("ist", "war") if arm == SPECULATIVE and draft == "copy" else reference.lower()
    tokens = list(range(3, 3 + length))
    return ExampleRecord(example, arm, 0, 1, 9, tokens, text, reference, "eos", seconds, 0.012, rounds)


def build_samples(folder: Path, task: str, temperature: float) -> None:
    references = TASKS[task][1]
    rows = [
        {"id": f"{task}-{i}", "prompt": "", "reference": text, "tokens": [3, 4], "text": text.lower()}
        for i, text in enumerate(references)
    ]
    write_parquet(folder / "samples" / task / TARGET / f"t{temperature}.parquet", pd.DataFrame(rows))


def build_overlap(folder: Path, task: str) -> None:
    draw = random.Random(task)
    rows = []
    for draft, temperature, i in product(DRAFT_C, (0, 1), range(EXAMPLES)):
        betas = [min(1.0, max(0.0, draw.gauss(ALPHA[draft], 0.2))) for _ in range(LENGTHS[i])]
        row = {"draft": draft, "temperature": float(temperature), "id": f"{task}-{i}", "tokens": len(betas)}
        rows.append({**row, "beta_sum": sum(betas), "betas": betas})
    write_parquet(folder / "overlap" / task / f"{TARGET}.parquet", pd.DataFrame(rows))


def build_cost(folder: Path, task: str) -> None:
    seconds = {str(k): value for k, value in TARGET_S.items()}
    drafts = {
        name: {"t_s": c * TARGET_S[1], "c": c, "ops_ratio": 2 * c, "kind": "neural"}
        for name, c in DRAFT_C.items()
    }
    cost = {"target": {"t_s": seconds, "iqr_s": dict.fromkeys(seconds, 1e-4)}, "drafts": drafts}
    write_json(folder / "cost" / task / f"{TARGET}.json", {**cost, "provenance": PROVENANCE})
