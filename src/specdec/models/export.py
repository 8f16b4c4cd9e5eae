"""The finished model's folder: bf16 weights, tokenizer, and how it was made."""

import copy
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from specdec.files import atomic_path, provenance, read_parquet, write_json
from specdec.models.build import generation_config
from specdec.models.examples import data_folders
from specdec.models.generate import generate
from specdec.models.tokenizer import encode

LICENCE = "Apache-2.0"


def export_model(
    model: PreTrainedModel, inputs, curve: pd.DataFrame, measure: Callable, data: dict, out: Path
) -> None:
    """Write the model folder at ``out``, whole or not at all.

    inputs: the run's ``train.Inputs``. measure: model -> dev metrics; taken on the weights as stored, in
    bf16 precision.
    """
    stored = copy.deepcopy(model).to(torch.bfloat16)
    rounded = copy.deepcopy(stored).float().eval()
    recipe = inputs.recipe
    record = {
        "name": recipe.name,
        "recipe": asdict(recipe),
        "parameters": model.num_parameters(),
        "steps": recipe.schedule.steps,
        "seconds": float(curve["seconds"].max()) if len(curve) else 0.0,
        "dev": measure(rounded),
        "data": data,
        "tokenizer_sha256": inputs.tokenizer_sha256,
        "teacher_sha256": inputs.teacher_sha256,
        "licence": LICENCE,
        "threads": torch.get_num_threads(),
        **provenance(),
    }
    if recipe.bleu_task:
        record["test_bleu"] = test_bleu(rounded, inputs, recipe.bleu_task)
    with atomic_path(out) as folder:
        stored.generation_config = generation_config(recipe, inputs.tokenizer, recipe.max_target_tok)
        stored.save_pretrained(folder)
        inputs.tokenizer.save_pretrained(folder)
        write_json(folder / "training.json", record)
        curve.to_csv(folder / "loss.csv", index=False)
        plot_curve(curve, recipe.name, folder / "loss.png")
        (folder / "README.md").write_text(model_card(record), "utf-8")


def test_bleu(model: PreTrainedModel, inputs, task: str) -> dict:
    """sacreBLEU of greedy output on the task's test set: {"score", "signature", "rows"}."""
    folder = inputs.folders.get(task) or data_folders(inputs.recipe, list(inputs.folders.values()))[task]
    frame = read_parquet(folder / "test.parquet")
    outputs = greedy_texts(model, inputs.tokenizer, frame["prompt"].tolist(), inputs.recipe.max_target_tok)
    return bleu(outputs, frame["reference"].tolist())


def greedy_texts(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, prompts: list[str], limit: int
) -> list[str]:
    """Greedy continuations of each prompt, decoded, special tokens left out."""
    import numpy as np

    ids = [np.asarray(row, np.int32) for row in encode(tokenizer, prompts)]
    texts = generate(model, ids, temperature=0.0, max_new_tokens=limit)
    return tokenizer.batch_decode([text.tokens for text in texts], skip_special_tokens=True)


def bleu(outputs: list[str], references: list[str]) -> dict:
    """Corpus sacreBLEU with its signature."""
    from sacrebleu.metrics import BLEU

    metric = BLEU()
    score = metric.corpus_score(outputs, [references])
    return {"score": round(score.score, 2), "signature": str(metric.get_signature()), "rows": len(outputs)}


def plot_curve(curve: pd.DataFrame, title: str, path: Path) -> None:
    """Loss against steps, a line a split."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import seaborn as sns

    with sns.axes_style("whitegrid"):
        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        sns.lineplot(curve, x="step", y="loss", hue="split", ax=axes, errorbar=None)
        axes.set(title=title, xlabel="step", ylabel="loss (nats a token)")
        figure.savefig(path, dpi=120)
        plt.close(figure)


def model_card(record: dict) -> str:
    """README.md of a model folder."""
    sources = {
        (source.get("name"), source.get("version"), source.get("license"))
        for facts in record["data"].values()
        for source in facts["sources"]
    }
    dev = "\n".join(
        f"| {split} | " + ", ".join(f"{key} {value:.4f}" for key, value in metrics.items()) + " |"
        for split, metrics in record["dev"].items()
    )
    score, recipe = record.get("test_bleu"), record["recipe"]
    lines = [
        "---", f"license: {LICENCE.lower()}", "library_name: transformers", "---", f"# {record['name']}", "",
        recipe["comment"].strip() or "A model of a specdec study.", "",
        f"- {record['parameters']:,} parameters, `{recipe['architecture']['type']}` shape, bf16 weights",
        f"- {record['steps']:,} steps in {record['seconds'] / 60:.1f} minutes on {record['hardware']['cpu']}",
        f"- tasks: {', '.join(record['data'])}; curve: `loss.csv`",
        "- recipe, data hashes and versions: `training.json`",
    ]  # fmt: skip
    if score:
        lines.append(f"- test BLEU (greedy, {score['rows']} rows): {score['score']} ({score['signature']})")
    lines += ["", "| split | on the stored weights |", "|---|---|", dev, "", "## Licence", ""]
    lines.append(f"The weights are under {LICENCE}. They were trained on text from:")
    lines += ["", *(f"- {name} {version}: {licence}" for name, version, licence in sorted(sources, key=str))]
    return "\n".join(lines) + "\n"
