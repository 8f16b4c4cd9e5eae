"""alpha by overlap: beta = sum_x min(p(x), q(x)) along the target's own outputs (Corollary 3.6), teacher-forced.

The one module of this layer that runs models. Shapes: n tokens of a sample, V the vocabulary.
"""

import sys

import pandas as pd
import torch
from torch import Tensor

from specdec.acceptance import overlap
from specdec.decoding.drafts import Draft, NeuralDraft
from specdec.decoding.engine import Limits, one_width
from specdec.decoding.pair import LoadedDraft, capacity_for
from specdec.errors import UserError
from specdec.models.loading import LanguageModel
from specdec.models.stepper import make_stepper
from specdec.sampling import SamplingParams, SeededRandomness, to_probs


@torch.inference_mode()
def score_samples(
    target: LanguageModel, drafts: list[LoadedDraft], samples: pd.DataFrame, filters: SamplingParams
) -> pd.DataFrame:
    """beta at every token of stored samples, for all drafts from one pass of the target.

    samples: rows of ``sample_target`` with a column ``temperature``, at which the row is scored; filters: top-k and
    top-p of the study.
    Returns one row a (draft, temperature, sample): draft, draft_kind, temperature, id, sample, tokens, beta_sum,
    betas, accepts; accepts[i] = min(1, q(x) / p(x)) of the token x that the target chose, the chance that the
    round goes on given that x comes. Where a copy draft finds no match its beta is 0. Raises ``UserError`` on an empty set.
    """
    if samples.empty:
        raise UserError("no target samples to score; run the sample stage with more tokens")
    prompts = [target.encode(prompt) for prompt in samples["prompt"]]
    longest = int(samples["tokens"].map(len).max())
    capacity = capacity_for(target, prompts, longest, 0)
    stepper = make_stepper(target, capacity)
    bound = {draft.spec.name: draft.bind(target, capacity) for draft in drafts}
    rows = []
    for done, (row, prompt) in enumerate(zip(samples.itertuples(index=False), prompts, strict=True)):
        params = SamplingParams(row.temperature, filters.top_k, filters.top_p)
        tokens = [int(token) for token in row.tokens]
        sequence = stepper.prefill(prompt)
        p = to_probs(stepper.step(sequence[stepper.length :] + tokens[:-1])[-len(tokens) :], params)
        for name, draft in bound.items():
            q = _draft_probs(draft, prompt, sequence, tokens, params)
            wide_p, wide_q = one_width(p, q)
            beta = overlap(wide_p, wide_q)
            at = torch.tensor(tokens).unsqueeze(1)
            accepts = (wide_q.gather(1, at) / wide_p.gather(1, at)).clamp_max(1).flatten()
            rows.append(
                {
                    "draft": name,
                    "draft_kind": draft.kind,
                    "temperature": row.temperature,
                    "id": row.id,
                    "sample": row.sample,
                    "tokens": len(tokens),
                    "beta_sum": float(beta.sum()),
                    "betas": beta.tolist(),
                    "accepts": accepts.tolist(),
                }
            )
        if (done + 1) % 100 == 0:
            print(f"{done + 1}/{len(samples)} samples scored", file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def _draft_probs(draft: Draft, prompt: list[int], sequence: list[int], tokens: list[int], params) -> Tensor:
    """q at every position of ``tokens``, [n, V]; all zero where a copy draft has nothing to propose."""
    if isinstance(draft, NeuralDraft):
        own = draft.stepper.prefill(prompt)
        return to_probs(draft.stepper.step(own[draft.stepper.length :] + tokens[:-1])[-len(tokens) :], params)
    draft.prefill(prompt, sequence)
    context = list(sequence)
    randomness, limits = SeededRandomness(0, "unused"), Limits(1, frozenset())
    rows = []
    for token in tokens:
        _, q = draft.propose(context, 1, params, limits, randomness)
        rows.append(q[0] if len(q) else torch.zeros(q.shape[-1]))
        context.append(token)
    return torch.stack(rows)
