"""``specdec ngram``: count a unigram or bigram table on the training text."""

from pathlib import Path
from typing import Annotated

import typer

from specdec.cli.common import TargetOption, TaskDataOption


def ngram(
    order: Annotated[int, typer.Option(help="1 (unigram) or 2 (bigram)")],
    target: TargetOption,
    task_data: TaskDataOption,
    out: Annotated[Path, typer.Option(help="table to write (safetensors)")],
) -> None:
    """Count n-grams in the training references, in the target's tokens."""
    from specdec.decoding import ngram as tables
    from specdec.files import read_parquet
    from specdec.models.loading import load_model

    model = load_model(target)
    references = read_parquet(task_data / "train.parquet")["reference"].tolist()
    tables.train(model.training_sequences(references), order, model.width).save(out)
