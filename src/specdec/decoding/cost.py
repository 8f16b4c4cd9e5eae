"""What a run costs on this machine: t_p(k), t_q(1), c (Definition 3.7) and c_hat (Definition 3.10)."""

import random
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from specdec.decoding.engine import Limits
from specdec.decoding.pair import LoadedDraft
from specdec.models.loading import LanguageModel
from specdec.models.stepper import make_stepper
from specdec.sampling import SamplingParams, SeededRandomness


@torch.inference_mode()
def measure_cost(
    target: LanguageModel,
    drafts: list[LoadedDraft],
    prompt: list[int],
    gamma_max: int,
    context: int = 32,
    repeats: int = 60,
) -> dict:
    """Median seconds of target runs over 1 to gamma_max + 1 positions and of one run of each draft.

    Every run starts ``context`` tokens into a text; all are interleaved in random order, so that drift of the
    machine falls on all alike. A table's or a copy's run is one proposal of one token.
    """
    widths = range(1, gamma_max + 2)
    start = 1 if target.encoder_decoder else len(prompt)
    capacity = start + context + gamma_max + 2
    filler = [token for token in prompt if token not in target.eos_ids] or prompt
    text = (filler * (context // len(filler) + 1))[:context]
    runs: dict[object, Callable[[], None]] = {}
    stepper = make_stepper(target, capacity)
    sequence = stepper.prefill(prompt) + text
    stepper.step(sequence[stepper.length : -1])
    for k in widths:
        runs[k] = _model_run(stepper, (sequence[-1:] * k)[:k])
    for draft in drafts:
        runs[draft.spec.name] = _draft_run(draft, target, capacity, prompt, sequence)
    seconds: dict[object, list[float]] = {key: [] for key in runs}
    order = random.Random(0)
    for repeat in range(repeats + 5):
        keys = list(runs)
        order.shuffle(keys)
        for key in keys:
            begin = time.perf_counter()
            runs[key]()
            if repeat >= 5:
                seconds[key].append(time.perf_counter() - begin)
    print(f"{repeats} interleaved runs of {len(runs)} kinds", file=sys.stderr)
    return _summary(seconds, widths, drafts, target, context)


def _model_run(stepper, tokens: list[int]) -> Callable[[], None]:
    length = stepper.length

    def run() -> None:
        stepper.rollback(length)
        stepper.step(tokens)

    return run


def _draft_run(
    draft: LoadedDraft, target: LanguageModel, capacity: int, prompt, sequence
) -> Callable[[], None]:
    bound = draft.bind(target, capacity)
    bound.prefill(prompt, sequence[: 1 if target.encoder_decoder else len(prompt)])
    if draft.model is not None:
        bound.stepper.step(sequence[bound.stepper.length : -1])
        return _model_run(bound.stepper, sequence[-1:])
    randomness = SeededRandomness(0, "cost")
    limits = Limits(1, frozenset())
    return lambda: bound.propose(sequence, 1, SamplingParams(), limits, randomness)


def _summary(
    seconds: dict, widths: range, drafts: list[LoadedDraft], target: LanguageModel, context: int
) -> dict:
    median = {key: float(np.median(values)) for key, values in seconds.items()}
    iqr = {key: float(np.subtract(*np.percentile(values, [75, 25]))) for key, values in seconds.items()}
    return {
        "context_tok": context,
        "target": {
            "t_s": {str(k): median[k] for k in widths},
            "iqr_s": {str(k): iqr[k] for k in widths},
        },
        "drafts": {
            draft.spec.name: {
                "kind": draft.spec.kind,
                "t_s": median[draft.spec.name],
                "iqr_s": iqr[draft.spec.name],
                "c": median[draft.spec.name] / median[1],
                "ops_ratio": draft.operations_ratio(target),
            }
            for draft in drafts
        },
    }
