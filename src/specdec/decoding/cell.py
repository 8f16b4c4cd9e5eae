"""One cell of a study: the baseline and the speculative arm decode the same examples, turn by turn."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from specdec.decoding.engine import Limits, baseline, speculative
from specdec.decoding.pair import LoadedDraft, capacity_for
from specdec.errors import UserError
from specdec.models.loading import LanguageModel
from specdec.models.stepper import make_stepper
from specdec.records import BASELINE, SPECULATIVE, ExampleRecord, Generation
from specdec.sampling import NonFiniteLogitsError, SamplingParams, SeededRandomness


@dataclass(frozen=True)
class CellSettings:
    """What a cell decodes and how. repeats: times each example is decoded by each arm."""

    gamma: int
    params: SamplingParams
    max_new_tokens: int
    seed: int
    repeats: int = 1


def run_cell(
    target: LanguageModel, draft: LoadedDraft, examples: pd.DataFrame, settings: CellSettings
) -> list[ExampleRecord]:
    """Decode every example by both arms in one process, alternating which arm goes first.

    The first example is decoded once by each arm beforehand, unrecorded, to warm up.
    Raises ``UserError`` on an empty set, a prompt that does not fit, or non-finite logits (example and step named).
    """
    if examples.empty:
        raise UserError("no examples to decode: the test split is empty")
    prompts = [target.encode(prompt) for prompt in examples["prompt"]]
    arms = _arms(target, draft, prompts, settings)
    rows = list(zip(examples.itertuples(index=False), prompts, strict=True))
    for arm in arms:
        _decode(target, arms[arm], arm, *rows[0], 0, settings)
    records: list[ExampleRecord] = []
    progress = _Progress(len(rows) * settings.repeats)
    for repeat in range(settings.repeats):
        for index, (row, prompt) in enumerate(rows):
            order = (BASELINE, SPECULATIVE) if (index + repeat) % 2 == 0 else (SPECULATIVE, BASELINE)
            pair = [_decode(target, arms[arm], arm, row, prompt, repeat, settings) for arm in order]
            records += pair
            progress.add(pair)
    return records


def _arms(
    target: LanguageModel, draft: LoadedDraft, prompts: list[list[int]], settings: CellSettings
) -> dict:
    """Each arm as a function of (prompt, randomness, on_prefill), sharing the target's caches."""
    capacity = capacity_for(target, prompts, settings.max_new_tokens, settings.gamma)
    if draft.model is not None:
        capacity_for(draft.model, prompts, settings.max_new_tokens, settings.gamma)
    stepper, guesser = make_stepper(target, capacity), draft.bind(target, capacity)
    limits = Limits(settings.max_new_tokens, target.eos_ids)

    def decode_baseline(prompt, randomness, on_prefill) -> Generation:
        return baseline(stepper, prompt, settings.params, limits, randomness, on_prefill)

    def decode_speculative(prompt, randomness, on_prefill) -> Generation:
        return speculative(
            stepper, guesser, settings.gamma, prompt, settings.params, limits, randomness, on_prefill
        )

    return {BASELINE: decode_baseline, SPECULATIVE: decode_speculative}


def _decode(
    target: LanguageModel,
    decode: Callable,
    arm: str,
    row,
    prompt: list[int],
    repeat: int,
    settings: CellSettings,
) -> ExampleRecord:
    # The arms draw from streams of their own: tests of their outputs assume independence.
    randomness = SeededRandomness(settings.seed, f"{arm}/{row.id}", repeat)
    marks: list[float] = []
    begin = time.perf_counter()
    try:
        generation = decode(prompt, randomness, lambda: marks.append(time.perf_counter()))
    except NonFiniteLogitsError as error:
        raise UserError(
            f"{target.name}: {error} of example {row.id} ({arm} arm); the weights are broken or the dtype overflows"
        ) from None
    end = time.perf_counter()
    return ExampleRecord(
        id=row.id,
        arm=arm,
        repeat=repeat,
        seed=settings.seed,
        prompt_tok=len(prompt),
        tokens=generation.tokens,
        text=target.decode(generation.tokens),
        reference=row.reference,
        stop=generation.stop,
        seconds=end - begin,
        prefill_s=marks[0] - begin,
        rounds=generation.rounds,
    )


class _Progress:
    """A line in the job's log every few seconds."""

    def __init__(self, total: int, every_s: float = 5.0):
        self.total, self.every_s, self.done = total, every_s, 0
        self.seconds = {BASELINE: 0.0, SPECULATIVE: 0.0}
        self.tokens = {BASELINE: 0, SPECULATIVE: 0}
        self.last = time.monotonic()

    def add(self, pair: list[ExampleRecord]) -> None:
        self.done += 1
        for record in pair:
            self.seconds[record.arm] += record.seconds
            self.tokens[record.arm] += len(record.tokens)
        if time.monotonic() - self.last > self.every_s or self.done == self.total:
            self.last = time.monotonic()
            base, spec = (1e3 * self.seconds[arm] / max(1, self.tokens[arm]) for arm in self.seconds)
            print(
                f"{self.done}/{self.total} examples: baseline {base:.2f} ms/token, speculative {spec:.2f} ms/token",
                file=sys.stderr,
                flush=True,
            )
