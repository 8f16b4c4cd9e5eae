"""The lean steppers against transformers' own forward, through random sequences of step and rollback."""

import random

import pytest
import torch

from specdec.errors import UserError
from specdec.models.generic import GenericStepper
from specdec.models.stepper import make_stepper
from tests.models.shapes import BUILDERS, WORDS, language_model

PROMPT = [5, 9, 3, 7, 1]


def cold(model, prompt, sequence):
    """Logits after the last token of ``sequence``, from one uncached forward pass."""
    if model.encoder_decoder:
        out = model.model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([sequence]))
    else:
        out = model.model(input_ids=torch.tensor([sequence]))
    return out.logits[0]


@pytest.mark.parametrize("make", [make_stepper, GenericStepper], ids=["lean", "generic"])
@pytest.mark.parametrize("shape", BUILDERS)
def test_random_steps_and_rollbacks_equal_a_cold_forward(shape, make):
    model = language_model(shape)
    stepper = make(model, 48)
    draw = random.Random(shape)
    for _ in range(3):
        prompt = [draw.randrange(3, len(WORDS)) for _ in range(draw.randint(1, 7))]
        sequence = stepper.prefill(prompt)
        for _ in range(12):
            if stepper.length > 1 and draw.random() < 0.5:
                kept = draw.randint(max(1, stepper.length - 4), stepper.length)
                stepper.rollback(kept)
                sequence = sequence[:kept]
            room = 40 - len(sequence)
            new = [draw.randrange(len(WORDS)) for _ in range(min(draw.randint(1, 4), room))]
            fed = sequence[stepper.length :] + new
            if not fed:
                break
            sequence = sequence + new
            logits = stepper.step(fed)
            assert logits.shape == (len(fed), len(WORDS))
            assert stepper.length == len(sequence)
            torch.testing.assert_close(
                logits, cold(model, prompt, sequence)[-len(fed) :], atol=2e-5, rtol=1e-4
            )


def test_rejection_at_the_first_of_four_drafts_leaves_the_next_logits_of_a_cold_run():
    """Field case 15."""
    model = language_model("t5-relu-tied")
    stepper = make_stepper(model, 16)
    sequence = stepper.prefill(PROMPT)
    stepper.step([*sequence, 4, 5, 6, 7])
    stepper.rollback(1)
    torch.testing.assert_close(stepper.step([8])[-1], cold(model, PROMPT, [0, 8])[-1], atol=2e-5, rtol=1e-4)


def test_encoder_runs_once_a_prompt():
    """Field case 17."""
    model = language_model("t5-relu-tied")
    calls = []
    model.model.get_encoder().register_forward_hook(lambda *_: calls.append(1))
    stepper = make_stepper(model, 16)
    stepper.step(stepper.prefill(PROMPT))
    stepper.step([4, 5])
    stepper.rollback(1)
    stepper.step([6])
    assert len(calls) == 1


@pytest.mark.parametrize("shape", BUILDERS)
def test_a_prompt_or_text_longer_than_the_caches_is_refused(shape):
    model = language_model(shape)
    stepper = make_stepper(model, 6)
    if model.encoder_decoder:
        stepper.prefill([3] * 7)
    with pytest.raises(UserError, match="7 tokens do not fit into 6 positions"):
        stepper.step([3] * 7) if model.encoder_decoder else stepper.prefill([3] * 7)


def test_more_positions_than_the_model_has_are_refused():
    with pytest.raises(UserError, match="65 tokens do not fit into 64 positions"):
        make_stepper(language_model("gpt2"), 65)


@pytest.mark.parametrize("shape", ["t5-relu-tied", "gpt2"])
def test_an_empty_prompt_is_refused(shape):
    with pytest.raises(UserError, match="empty prompt"):
        make_stepper(language_model(shape), 6).prefill([])
