"""Training end to end on tiny models: recipes refused with one line, exact resumption, distillation that
helps.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file

from specdec.errors import UserError
from specdec.files import sha256_rows
from specdec.models.build import load_model
from specdec.models.examples import BatchPlan, Example
from specdec.models.generate import generate
from specdec.models.losses import divergences
from specdec.models.recipe import Schedule, TokenizerRecipe, load_recipe
from specdec.models.tokenizer import train_tokenizer
from specdec.models.train import train_model
from specdec.models.trainer import find_checkpoint

T5 = {
    "type": "t5",
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 64,
    "num_heads": 2,
    "num_layers": 1,
    "num_decoder_layers": 2,
}
GPT2 = {"type": "gpt2", "n_embd": 32, "n_inner": 64, "n_head": 2, "n_layer": 2, "n_positions": 64}
LLAMA = {
    "type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2,
    "num_hidden_layers": 2, "max_position_embeddings": 64,
}  # fmt: skip
PLAN = {
    "steps": 12,
    "warmup_steps": 2,
    "decay_steps": 4,
    "batch_target_tok": 128,
    "learning_rate": 3.0e-3,
    "eval_every": 6,
}
SAVE_OFTEN = "import specdec.models.trainer as t, specdec.cli as c; t.SAVE_EVERY_S = 0.0; c.main()"
COLOURS = ["red", "green", "blue", "black", "white"]


def recipe_file(path: Path, **changes) -> Path:
    base = {"name": "m", "architecture": T5, "tasks": {"toy": 1}, "schedule": PLAN, "max_target_tok": 24}
    path.write_text(yaml.safe_dump({**base, **changes}))
    return path


def write_task(folder: Path, rows: int = 96, kind: str = "seq2seq", task: str = "toy") -> Path:
    """A task whose answer is the prompt's colours in reverse order."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    meta = {"task": task, "kind": kind, "prefix": "", "revision": "1", "sources": [], "splits": {}}
    for split, count in (("train", rows), ("dev", 16), ("test", 8)):
        words = [[COLOURS[i] for i in rng.integers(0, 5, rng.integers(2, 7))] for _ in range(count)]
        prompts = ["" if kind == "lm" else "reverse: " + " ".join(w) for w in words]
        frame = pd.DataFrame(
            {
                "id": [f"{split}-{i}" for i in range(count)],
                "prompt": prompts,
                "reference": [" ".join(w[::-1]) for w in words],
                "group": "g",
            }
        )
        frame.to_parquet(folder / f"{split}.parquet", index=False)
        meta["splits"][split] = {"rows": count, "sha256": sha256_rows(frame)}
    (folder / "data.json").write_text(json.dumps(meta))
    return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Data, tokenizer, and a teacher trained on it."""
    root = tmp_path_factory.mktemp("world")
    data = write_task(root / "toy")
    texts = ["reverse: " + " ".join(COLOURS)] * 20
    train_tokenizer(texts, TokenizerRecipe(name="t", vocab_size=64)).save_pretrained(root / "tokenizer")
    plan = {**PLAN, "steps": 60, "decay_steps": 20, "learning_rate": 1.0e-2, "batch_target_tok": 256}
    recipe = load_recipe(recipe_file(root / "teacher.yaml", schedule=plan, bleu_task="toy"))
    train_model(recipe, [data], root / "tokenizer", None, root / "models" / "teacher")
    return root


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": 1}, "unknown key 'colour'"),
        ({"schedule": {**PLAN, "step": 3}}, "schedule: unknown key 'step'"),
        ({"schedule": {"warmup_steps": 1, "decay_steps": 1}}, "key 'steps' is missing"),
        ({"schedule": {**PLAN, "steps": 3}}, "must lie within steps = 3"),
        ({"schedule": {**PLAN, "learning_rate": "1e-3"}}, "YAML wants"),
        ({"schedule": {**PLAN, "steps": True}}, "type int"),
        ({"schedule": {**PLAN, "eval_every": 0}}, "eval_every = 0"),
        ({"architecture": {"type": "rnn"}}, "use one of t5, gpt2, llama"),
        ({"tasks": {}}, "tasks is empty"),
        ({"tasks": {"toy": -1}}, "passes an epoch must be a positive number"),
        ({"distillation": {"sampled": 0.0, "greedy": 0.0}}, "some text and some loss"),
        ({"distillation": {"init": "warm"}}, "use 'random' or 'teacher'"),
    ],
)
def test_bad_recipe_is_one_line(tmp_path, changes, message):
    with pytest.raises(UserError, match=message) as caught:
        load_recipe(recipe_file(tmp_path / "r.yaml", **changes))
    assert "r.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_recipes(tmp_path):
    with pytest.raises(UserError, match="no such recipe"):
        load_recipe(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1")
    with pytest.raises(UserError, match="not valid YAML"):
        load_recipe(tmp_path / "bad.yaml")


def test_bad_inputs_leave_nothing_behind(world, tmp_path):
    out = tmp_path / "models" / "m"
    tokenizer, data = world / "tokenizer", world / "toy"
    plain = load_recipe(recipe_file(tmp_path / "r.yaml"))
    draft = load_recipe(recipe_file(tmp_path / "d.yaml", distillation={}))
    other = load_recipe(recipe_file(tmp_path / "o.yaml", tasks={"other": 1}))
    shape = load_recipe(recipe_file(tmp_path / "s.yaml", architecture={**T5, "n_layer": 3}))
    foreign = tmp_path / "foreign"
    train_tokenizer(["red green"] * 9, TokenizerRecipe(name="t", vocab_size=64)).save_pretrained(foreign)
    empty = write_task(tmp_path / "empty", rows=0)
    teacher = world / "models" / "teacher"
    cases = [
        (draft, data, tokenizer, None, "give --teacher"),
        (plain, data, tokenizer, teacher, "drop --teacher"),
        (other, data, tokenizer, None, "no --data folder for task 'other'"),
        (shape, data, tokenizer, None, "architecture.n_layer: no such key"),
        (draft, data, foreign, teacher, "a draft needs its target's tokenizer"),
        (plain, empty, tokenizer, None, "no usable row among 0"),
        (plain, tmp_path / "none", tokenizer, None, "no such file"),
        (plain, data, tmp_path / "none", None, "no such file"),
    ]
    for recipe, folder, tokens, taught_by, message in cases:
        with pytest.raises(UserError, match=message):
            train_model(recipe, [folder], tokens, taught_by, out)
    assert not out.parent.exists()


def test_teacher_folder_is_whole(world):
    folder = world / "models" / "teacher"
    expected = {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
    }
    assert expected | {"training.json", "loss.csv", "loss.png", "README.md"} == {
        p.name for p in folder.iterdir()
    }
    assert {t.dtype for t in load_file(folder / "model.safetensors").values()} == {torch.bfloat16}
    record = json.loads((folder / "training.json").read_text())
    curve = pd.read_csv(folder / "loss.csv")
    dev = curve[curve["split"] == "dev:toy"]["loss"]
    assert record["steps"] == 60
    assert record["test_bleu"]["signature"]
    assert dev.iloc[-1] < dev.iloc[0]
    assert record["dev"]["dev:toy"]["loss"] == pytest.approx(dev.iloc[-1], rel=0.05)


def command(world: Path, recipe: Path, out: Path) -> list[str]:
    return [
        sys.executable, "-c", SAVE_OFTEN,
        "train", "--recipe", str(recipe), "--data", str(world / "toy"), "--tokenizer", str(world / "tokenizer"),
        "--out", str(out), "--threads", "1",
    ]  # fmt: skip


def test_killed_run_resumes_to_the_same_weights(world, tmp_path, capsys):
    """Dropout is on, so the state of the random generator counts too."""
    plan = {**PLAN, "steps": 40}
    file = recipe_file(tmp_path / "r.yaml", architecture={**T5, "dropout_rate": 0.1}, schedule=plan)
    undisturbed, killed = tmp_path / "a" / "m", tmp_path / "b" / "m"
    process = subprocess.Popen(
        command(world, file, killed),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while (
        not list(killed.parent.glob(".m.work/*/checkpoint-*/complete.json")) and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not killed.exists()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for out in (undisturbed, killed):
        train_model(load_recipe(file), [world / "toy"], world / "tokenizer", None, out)
    torch.set_num_threads(threads)
    assert capsys.readouterr().err.count("resuming from") == 1
    assert (undisturbed / "model.safetensors").read_bytes() == (killed / "model.safetensors").read_bytes()
    dev = [pd.read_csv(out / "loss.csv").query("split == 'dev:toy'")["loss"] for out in (undisturbed, killed)]
    pd.testing.assert_series_equal(*dev)
    assert not list(killed.parent.glob(".m.work/*/checkpoint-*"))


def test_longer_run_starts_where_the_decay_began(tmp_path):
    def checkpoint(name: str, step: int, plan: Schedule) -> None:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "complete.json").write_text(json.dumps({"step": step, "plan": plan.__dict__}))

    short = Schedule(steps=100, warmup_steps=5, decay_steps=20)
    checkpoint("stable", 80, short)
    checkpoint("checkpoint-95", 95, short)
    (tmp_path / "checkpoint-99").mkdir()  # killed while it was written
    assert find_checkpoint(tmp_path, short).name == "checkpoint-95"
    assert find_checkpoint(tmp_path, Schedule(steps=200, warmup_steps=5, decay_steps=40)).name == "stable"
    assert find_checkpoint(tmp_path, Schedule(steps=90, warmup_steps=5, decay_steps=20)) is None


def test_batches_cover_an_epoch_within_their_budget():
    rng = np.random.default_rng(0)
    tasks = [
        [
            Example(np.zeros(rng.integers(1, 20), np.int32), np.zeros(rng.integers(1, 30), np.int32))
            for _ in range(n)
        ]
        for n in (50, 30)
    ]
    plan = Schedule(steps=200, warmup_steps=1, decay_steps=1, batch_target_tok=100, batch_source_tok=60)
    flat = [e for task in tasks for e in task]
    batches = list(BatchPlan(tasks, [1.0, 2.0], plan, seed=3))
    assert len(batches) == 200
    assert batches == list(BatchPlan(tasks, [1.0, 2.0], plan, seed=3))
    first_epoch = np.concatenate(batches)[: 50 + 60]
    assert np.array_equal(np.bincount(first_epoch, minlength=80), [1] * 50 + [2] * 30)
    for batch in batches:
        assert len(batch) * max(len(flat[i].target) for i in batch) <= 100
        assert len(batch) * max(len(flat[i].source) + 1 for i in batch) <= 60
    halves = []
    for rank in (0, 1):
        part = BatchPlan(tasks, [1.0, 2.0], plan, seed=3)
        part.share = (rank, 2)
        halves.append(list(part))
    for whole, left, right in zip(batches, *halves, strict=True):
        assert set(left) | set(right) == set(whole)


def test_divergences_are_exact_with_the_whole_vocabulary():
    torch.manual_seed(0)
    p, logits = torch.randn(5, 7).softmax(-1), torch.randn(5, 7)
    q = logits.softmax(-1)
    top = p.topk(7)
    parts = divergences(logits, top.indices, top.values)
    torch.testing.assert_close(parts.tv, 1 - torch.minimum(p, q).sum(-1))
    torch.testing.assert_close(parts.kl, (p * (p / q).log()).sum(-1), atol=1e-4, rtol=1e-4)
    few = divergences(logits, top.indices[:, :3], top.values[:, :3])  # noqa: PD011
    assert (few.tv <= parts.tv + 1e-6).all()
    assert (few.kl <= parts.kl + 1e-4).all()


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_batched_generation_keeps_the_models_own_distributions(world, temperature):
    """Whatever else is in the batch, the kept probabilities are those of a cold pass over the text."""
    model = load_model(world / "models" / "teacher")
    prompts = [np.arange(3, 3 + n, dtype=np.int32) for n in (2, 5, 9, 4, 7)]
    out = generate(model, prompts, temperature=temperature, max_new_tokens=12, seed=5, top_k=4, batch_size=3)
    for prompt, text in zip(prompts, out, strict=True):
        tokens = torch.tensor(text.tokens)
        assert len(tokens) == 12 or tokens[-1] == 1
        decoder = torch.cat([torch.zeros(1, dtype=torch.long), tokens[:-1]])
        logits = model(input_ids=torch.tensor([[*prompt, 1]]), decoder_input_ids=decoder[None]).logits[0]
        top = logits.softmax(-1).topk(4)
        torch.testing.assert_close(torch.tensor(np.stack(text.top_probs)), top.values, atol=1e-5, rtol=1e-4)
        if temperature == 0:
            assert torch.equal(tokens, logits.argmax(-1))


def test_distillation_raises_alpha(world, tmp_path):
    plan = {
        **PLAN,
        "steps": 60,
        "decay_steps": 20,
        "learning_rate": 1.0e-2,
        "eval_every": 10,
        "batch_target_tok": 512,
    }
    distillation = {"teacher_top_k": 16, "dev_prompts": 16, "init": "teacher", "data": 0.5}
    recipe = load_recipe(recipe_file(tmp_path / "d.yaml", schedule=plan, distillation=distillation))
    train_model(
        recipe, [world / "toy"], world / "tokenizer", world / "models" / "teacher", tmp_path / "draft"
    )
    curve = pd.read_csv(tmp_path / "draft" / "loss.csv").query("split == 'dev:toy'")
    assert curve["alpha_t1"].iloc[-1] > curve["alpha_t1"].iloc[0] + 0.1
    assert curve["alpha_t0"].iloc[-1] >= curve["alpha_t0"].iloc[0]
    assert curve["loss"].iloc[-1] < curve["loss"].iloc[0]


@pytest.mark.parametrize("shape", [GPT2, LLAMA], ids=["gpt2", "llama"])
def test_decoder_only_models_train_and_distil(world, tmp_path, shape):
    data = write_task(tmp_path / "lm", kind="lm", task="lm")
    plain = load_recipe(recipe_file(tmp_path / "t.yaml", architecture=shape, tasks={"lm": 1}))
    train_model(plain, [data], world / "tokenizer", None, tmp_path / "target")
    changes = {"architecture": shape, "tasks": {"lm": 1}, "distillation": {"max_prompts": 32}}
    draft = load_recipe(recipe_file(tmp_path / "d.yaml", **changes))
    train_model(draft, [data], world / "tokenizer", tmp_path / "target", tmp_path / "draft")
    record = json.loads((tmp_path / "draft" / "training.json").read_text())
    assert 0 < record["dev"]["dev:lm"]["alpha_t1"] <= 1
