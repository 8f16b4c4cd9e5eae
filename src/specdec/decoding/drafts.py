"""What may guess tokens: a neural draft, n-gram tables, and copying from the context (Section 3.6).

A sampled draft hands over exactly the q it was sampled from; a deterministic one has a one-hot q.
Shapes: g drafts of a round, V the vocabulary.
"""

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from specdec.models.stepper import Stepper
from specdec.sampling import Randomness, SamplingParams, to_probs

if TYPE_CHECKING:
    from specdec.decoding.engine import Limits
    from specdec.decoding.ngram import NgramTable


class Draft(Protocol):
    """A guesser. ``sequence`` is the decoder's tokens so far, as the target's ``prefill`` began it."""

    kind: str

    def prefill(self, prompt: list[int], sequence: list[int]) -> None:
        """Start a prompt."""
        ...

    def propose(
        self,
        sequence: list[int],
        gamma: int,
        params: SamplingParams,
        limits: "Limits",
        randomness: Randomness,
    ) -> tuple[list[int], Tensor]:
        """Guess g <= gamma tokens after ``sequence``, none after an end token; returns them and q, [g, V]."""
        ...

    def rollback(self, length: int) -> None:
        """Forget all but the first ``length`` tokens of the sequence."""
        ...


class NeuralDraft:
    """A smaller model of the target's kind."""

    kind = "neural"

    def __init__(self, stepper: Stepper, width: int):
        self.stepper, self.width = stepper, width

    def prefill(self, prompt: list[int], sequence: list[int]) -> None:
        self.stepper.prefill(prompt)

    def propose(self, sequence, gamma, params, limits, randomness):
        drafts: list[int] = []
        rows: list[Tensor] = []
        fed = sequence[self.stepper.length :]
        while len(drafts) < gamma:
            probs = to_probs(self.stepper.step(fed)[-1], params)
            token = randomness.categorical(probs)
            drafts.append(token)
            rows.append(probs)
            if token in limits.eos_ids:
                break
            fed = [token]
        return drafts, torch.stack(rows) if rows else torch.zeros(0, self.width)

    def rollback(self, length: int) -> None:
        self.stepper.rollback(length)


class NgramDraft:
    """A unigram or bigram table: c is close to 0 (Section 3.6)."""

    def __init__(self, table: "NgramTable"):
        self.table, self.kind = table, table.kind
        self._cached_params: SamplingParams | None = None
        self._rows: dict[int, Tensor] = {}

    def prefill(self, prompt: list[int], sequence: list[int]) -> None:
        pass

    def propose(self, sequence, gamma, params, limits, randomness):
        drafts: list[int] = []
        rows: list[Tensor] = []
        last = sequence[-1]
        while len(drafts) < gamma:
            probs = self._probs(last, params)
            last = randomness.categorical(probs)
            drafts.append(last)
            rows.append(probs)
            if last in limits.eos_ids:
                break
        return drafts, torch.stack(rows) if rows else torch.zeros(0, self.table.width)

    def _probs(self, last: int, params: SamplingParams) -> Tensor:
        if params != self._cached_params:
            self._cached_params, self._rows = params, {}
        key = self.table.context(last)
        if key not in self._rows:
            self._rows[key] = to_probs(self.table.log_probs(key), params)
        return self._rows[key]

    def rollback(self, length: int) -> None:
        pass


class CopyDraft:
    """Copies what followed the longest earlier match of the context's end, prompt included (Section 3.6).

    Its q is one-hot: the copy is deterministic. Without a match it proposes nothing.
    """

    kind = "copy"

    def __init__(self, width: int, longest: int = 8):
        self.width, self.longest = width, longest
        self.prefix: list[int] = []

    def prefill(self, prompt: list[int], sequence: list[int]) -> None:
        # A decoder-only sequence starts with the prompt; an encoder's prompt is context too.
        self.prefix = [] if sequence == prompt else list(prompt)

    def propose(self, sequence, gamma, params, limits, randomness):
        drafts = limits.cut(self._continuation(self.prefix + sequence)[: max(gamma, 0)])
        q = torch.zeros(len(drafts), self.width)
        q[range(len(drafts)), drafts] = 1.0
        return drafts, q

    def _continuation(self, context: list[int]) -> list[int]:
        """What followed the most recent of the longest matches; [] without one."""
        best, best_end = 0, 0
        for end in range(len(context) - 1, 0, -1):
            length = 0
            while length < min(self.longest, end) and context[end - 1 - length] == context[-1 - length]:
                length += 1
            if length > best:
                best, best_end = length, end
            if best == self.longest:
                break
        return context[best_end:] if best else []

    def rollback(self, length: int) -> None:
        pass
