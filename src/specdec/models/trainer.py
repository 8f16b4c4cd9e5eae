"""transformers' Trainer with bucketed batches, a warm-up, stable, decay schedule, and exact resumption."""

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import PreTrainedModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.optimization import get_wsd_schedule

from specdec.files import atomic_path, read_json, write_json
from specdec.models.examples import BatchPlan, Collator, Example
from specdec.models.recipe import Schedule

MARKER = "complete.json"
SAVE_EVERY_S = 150.0
LOG_EVERY = 20


class RecipeTrainer(Trainer):
    """Trainer that takes its batches, its loss and its dev metrics from the caller.

    loss: (logits, batch) -> scalar. evaluate_model: model -> metrics by split, for example
    {"dev:ende": {"loss": 2.0}}.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        examples: list[Example],
        batches: BatchPlan,
        plan: Schedule,
        loss: Callable[[torch.Tensor, dict], torch.Tensor],
        evaluate_model: Callable[[PreTrainedModel], dict[str, dict[str, float]]],
        work: Path,
    ):
        self._batches, self._plan, self._loss, self._evaluate_model = batches, plan, loss, evaluate_model
        self._started, self._seconds_before = time.monotonic(), 0.0
        super().__init__(
            model=model,
            args=_arguments(plan, work),
            data_collator=Collator.for_model(model),
            train_dataset=examples,
            eval_dataset=examples[:1],
            optimizers=(_optimizer(model, plan), None),
            callbacks=[_Checkpoints(plan, work), _Progress(plan.steps)],
        )
        self.remove_callback(PrinterCallback)

    def get_train_dataloader(self) -> DataLoader:
        self._batches.share = (self.args.process_index, self.args.world_size)
        return DataLoader(self.train_dataset, batch_sampler=self._batches, collate_fn=self.data_collator)

    def create_scheduler(self, num_training_steps: int, optimizer=None):
        if self.lr_scheduler is None:
            self.lr_scheduler = get_wsd_schedule(
                optimizer or self.optimizer,
                num_warmup_steps=self._plan.warmup_steps,
                num_decay_steps=self._plan.decay_steps,
                num_training_steps=num_training_steps,
                decay_type="1-sqrt",
            )
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        extras = {key: inputs[key] for key in ("labels", "top_ids", "top_probs") if key in inputs}
        output = model(**{key: value for key, value in inputs.items() if key not in extras})
        loss = self._loss(output.logits, extras)
        return (loss, output) if return_outputs else loss

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval") -> dict:
        self.model.eval()
        by_split = self._evaluate_model(self.model)
        self.model.train()
        for split, metrics in by_split.items():
            self.log({"split": split, **metrics})
        metrics = {f"{metric_key_prefix}_loss": sum(m["loss"] for m in by_split.values()) / len(by_split)}
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def log(self, logs: dict, *args, **kwargs) -> None:
        seconds = self._seconds_before + time.monotonic() - self._started
        super().log({"split": "train", **logs, "seconds": round(seconds, 2)}, *args, **kwargs)

    def run(self, checkpoint: Path | None) -> None:
        """Train to the end, from ``checkpoint`` when given."""
        if checkpoint:
            history = read_json(checkpoint / "trainer_state.json")["log_history"]
            self._seconds_before = max((entry.get("seconds", 0.0) for entry in history), default=0.0)
        self._started = time.monotonic()
        self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    def loss_curve(self) -> pd.DataFrame:
        """Columns step, split, loss, lr, seconds, and alpha_t0, alpha_t1 where a draft was measured."""
        return loss_curve(self.state.log_history)


def loss_curve(history: list[dict]) -> pd.DataFrame:
    """The Trainer's log as a table; entries without a loss (its closing summary) are left out."""
    columns = ["step", "split", "loss", "learning_rate", "seconds", "alpha_t0", "alpha_t1"]
    frame = pd.DataFrame([entry for entry in history if "loss" in entry]).reindex(columns=columns)
    frame = frame.rename(columns={"learning_rate": "lr"})
    return frame.dropna(axis=1, how="all") if len(frame) else frame


def _arguments(plan: Schedule, work: Path) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(work),
        max_steps=plan.steps,
        learning_rate=plan.learning_rate,
        max_grad_norm=plan.clip,
        logging_steps=min(LOG_EVERY, plan.steps),
        eval_strategy="steps",
        eval_steps=min(plan.eval_every, plan.steps),
        save_strategy="steps",
        save_steps=plan.steps,
        save_total_limit=2,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to=[],
        log_level="error",
        use_cpu=not torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
    )


def _optimizer(model: PreTrainedModel, plan: Schedule) -> torch.optim.Optimizer:
    """AdamW; embeddings learn faster, and neither they nor norms and biases decay."""
    embeddings = {id(model.get_input_embeddings().weight)}
    groups: dict[str, list] = {"embedding": [], "matrix": [], "vector": []}
    for parameter in model.parameters():
        name = "embedding" if id(parameter) in embeddings else "matrix" if parameter.dim() > 1 else "vector"
        groups[name].append(parameter)
    rate = plan.learning_rate
    return torch.optim.AdamW(
        [
            {"params": groups["matrix"], "lr": rate, "weight_decay": plan.weight_decay},
            {"params": groups["embedding"], "lr": rate * plan.embedding_rate, "weight_decay": 0.0},
            {"params": groups["vector"], "lr": rate, "weight_decay": 0.0},
        ],
        lr=rate,
        betas=(0.9, plan.beta2),
        fused=True,
    )


def _decay_start(plan: Schedule) -> int:
    return plan.steps - plan.decay_steps


class _Checkpoints(TrainerCallback):
    """Saves every few minutes and before the decay; marks a checkpoint once it is whole."""

    def __init__(self, plan: Schedule, work: Path):
        self._plan, self._work, self._saved = plan, work, time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        due = _first_process_says(time.monotonic() - self._saved > SAVE_EVERY_S)
        if due or state.global_step == _decay_start(self._plan):
            control.should_save = True

    def on_save(self, args, state, control, **kwargs):
        self._saved = time.monotonic()
        if not state.is_world_process_zero:
            return
        folder = self._work / f"checkpoint-{state.global_step}"
        write_json(folder / MARKER, {"step": state.global_step, "plan": asdict(self._plan)})
        if state.global_step == _decay_start(self._plan):
            with atomic_path(self._work / "stable") as temporary:
                shutil.copytree(folder, temporary)


def _first_process_says(flag: bool) -> bool:
    """The first process's flag, in all processes of a data-parallel run: clocks differ."""
    if not torch.distributed.is_initialized():
        return flag
    tensor = torch.tensor([int(flag)])
    torch.distributed.broadcast(tensor, 0)
    return bool(tensor.item())


def find_checkpoint(work: Path, plan: Schedule) -> Path | None:
    """The furthest whole checkpoint that a run of this plan may continue from.

    One of a plan with other ``steps`` serves as long as neither plan had begun to decay.
    """
    best, furthest = None, 0
    for marker in work.glob(f"*/{MARKER}"):
        saved = json.loads(marker.read_text())
        step, theirs = saved["step"], Schedule(**saved["plan"])
        same = (theirs.steps, theirs.decay_steps) == (plan.steps, plan.decay_steps)
        if furthest < step <= (plan.steps if same else min(_decay_start(theirs), _decay_start(plan))):
            best, furthest = marker.parent, step
    return best


def drop_checkpoints(work: Path) -> None:
    """Remove all but the state before the decay, from which the run can be made longer."""
    for folder in work.glob("checkpoint-*"):
        shutil.rmtree(folder)


class _Progress(TrainerCallback):
    """A bar that suits a log file: a line every half minute, and one a dev evaluation."""

    def __init__(self, steps: int):
        self._steps, self._bar = steps, None

    def on_train_begin(self, args, state, control, **kwargs):
        self._bar = tqdm(
            total=self._steps, initial=state.global_step, mininterval=30, desc="train", file=sys.stderr
        )

    def on_step_end(self, args, state, control, **kwargs):
        self._bar.update(1)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs.get("split") == "train" and "loss" in logs:
            self._bar.set_postfix(loss=f"{logs['loss']:.3f}", refresh=False)
        elif "loss" in logs and state.is_world_process_zero:
            numbers = " ".join(
                f"{k} {v:.4f}" for k, v in logs.items() if isinstance(v, float) and k != "epoch"
            )
            self._bar.write(f"step {state.global_step} {logs['split']}: {numbers}", file=sys.stderr)

    def on_train_end(self, args, state, control, **kwargs):
        self._bar.close()
