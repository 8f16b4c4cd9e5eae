"""The target's own outputs on held-out prompts: what alpha by overlap is evaluated on (Corollary 3.6)."""

import sys

import pandas as pd

from specdec.decoding.engine import Limits, baseline
from specdec.decoding.pair import capacity_for
from specdec.errors import UserError
from specdec.models.loading import LanguageModel
from specdec.models.stepper import make_stepper
from specdec.sampling import NonFiniteLogitsError, SamplingParams, SeededRandomness


def sample_target(
    target: LanguageModel,
    examples: pd.DataFrame,
    params: SamplingParams,
    max_new_tokens: int,
    tokens: int,
    seed: int,
) -> pd.DataFrame:
    """Decode with the target alone until at least ``tokens`` tokens are there.

    Prompts are taken in order and, above temperature 0, again with a new sample index when they are used up.
    Returns one row a sample: id, sample, temperature, prompt, reference, tokens, text, stop.
    Raises ``UserError`` on an empty set or non-finite logits.
    """
    if examples.empty:
        raise UserError("no examples to sample from: the split is empty")
    prompts = [target.encode(prompt) for prompt in examples["prompt"]]
    stepper = make_stepper(target, capacity_for(target, prompts, max_new_tokens, 0))
    limits = Limits(max_new_tokens, target.eos_ids)
    rows: list[dict] = []
    made, index = 0, 0
    while made < tokens:
        for row, prompt in zip(examples.itertuples(index=False), prompts, strict=True):
            try:
                out = baseline(stepper, prompt, params, limits, SeededRandomness(seed, row.id, index))
            except NonFiniteLogitsError as error:
                raise UserError(
                    f"{target.name}: {error} of example {row.id}; the weights are broken"
                ) from None
            rows.append(
                {
                    "id": row.id,
                    "sample": index,
                    "temperature": params.temperature,
                    "prompt": row.prompt,
                    "reference": row.reference,
                    "tokens": out.tokens,
                    "text": target.decode(out.tokens),
                    "stop": out.stop,
                }
            )
            made += len(out.tokens)
            if len(rows) % 50 == 0:
                print(f"{len(rows)} samples, {made}/{tokens} tokens", file=sys.stderr, flush=True)
            if made >= tokens:
                break
        index += 1
        if params.greedy:
            break
    return pd.DataFrame(rows)
