"""``specdec train``: train a model, or distil a draft."""

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[Path, typer.Option(help="training recipe (YAML)")],
    data: Annotated[list[Path], typer.Option(help="prepared data folder; repeat for several")],
    tokenizer: Annotated[Path, typer.Option(help="tokenizer folder")],
    out: Annotated[Path, typer.Option(help="model folder to write")],
    teacher: Annotated[
        Path | None, typer.Option(help="model folder whose output a draft is distilled on")
    ] = None,
    threads: Annotated[int, typer.Option(help="CPU threads; 0 takes them all")] = 0,
) -> None:
    """Train a model from a recipe; a killed run resumes where it was."""
    from specdec.models.recipe import load_recipe

    plan = load_recipe(recipe)

    import torch

    from specdec.models.train import train_model

    if threads:
        torch.set_num_threads(threads)
    train_model(plan, data, tokenizer, teacher, out)
