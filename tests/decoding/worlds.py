"""Small exact worlds: a model that is a table, and a randomness that walks every branch with its weight."""

import hashlib
import itertools

import numpy as np
import torch

from specdec.decoding.drafts import NeuralDraft


class Enumerator:
    """Stands in for the two random primitives: one run follows ``path`` and then takes first options.

    ``outcomes(run)`` calls ``run(enumerator)`` once a branch and sums the weights of equal results.
    """

    def __init__(self, path):
        self.path, self.taken, self.options, self.weight = path, [], [], 1.0

    def _choose(self, weights):
        options = [i for i, weight in enumerate(weights) if weight > 0]
        at = len(self.taken)
        choice = self.path[at] if at < len(self.path) else options[0]
        self.taken.append(choice)
        self.options.append(options)
        self.weight *= weights[choice]
        return choice

    def categorical(self, probs):
        return self._choose(probs.double().tolist())

    def bernoulli(self, prob):
        prob = min(1.0, prob)
        return self._choose([1.0 - prob, prob]) == 1


def outcomes(run) -> dict:
    """The exact law of ``run(randomness)``: result -> probability."""
    law, path = {}, []
    while path is not None:
        walker = Enumerator(path)
        result = run(walker)
        law[result] = law.get(result, 0.0) + walker.weight
        path = None
        for at in reversed(range(len(walker.taken))):
            later = [o for o in walker.options[at] if o > walker.taken[at]]
            if later:
                path = [*walker.taken[:at], later[0]]
                break
    return law


class TableModel:
    """A model whose logits are a function of the whole prefix; the four verbs. calls: positions fed a step."""

    def __init__(self, probs_after, width):
        self.probs_after, self.width = probs_after, width
        self.fed, self.calls, self.prompts = [], [], 0

    @property
    def length(self):
        return len(self.fed)

    def prefill(self, prompt):
        self.prompts += 1
        self.fed = list(prompt[:-1])
        return list(prompt)

    def step(self, tokens):
        self.calls.append(len(tokens))
        rows = []
        for token in tokens:
            self.fed.append(token)
            rows.append(torch.as_tensor(np.log(self.probs_after(tuple(self.fed)) + 0.0), dtype=torch.float64))
        return torch.stack(rows)

    def rollback(self, length):
        self.fed = self.fed[:length]


def random_world(seed: int, width: int = 3):
    """Prefix-dependent probabilities, some of them zero."""

    def after(prefix):
        key = hashlib.sha256(repr((seed, prefix)).encode()).digest()
        draw = np.random.default_rng(int.from_bytes(key[:8], "big"))
        probs = draw.dirichlet(np.full(width, 0.7))
        if draw.random() < 0.3:
            probs[draw.integers(width)] = 0.0
        return probs / probs.sum()

    return after


def fixed(*probs):
    """The same distribution after every prefix."""
    return lambda prefix: np.asarray(probs, dtype=float)


def neural(probs_after, width=3):
    return NeuralDraft(TableModel(probs_after, width), width)


def all_sequences(width, length):
    return itertools.product(range(width), repeat=length)
