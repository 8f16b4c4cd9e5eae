"""``specdec sample``: the target's own outputs on held-out prompts."""

from pathlib import Path
from typing import Annotated

import typer

from specdec.cli.common import (
    DeviceOption,
    DtypeOption,
    LeadWordsOption,
    MaxNewTokensOption,
    SeedOption,
    TargetOption,
    TaskDataOption,
    TemperatureOption,
    ThreadsOption,
    TopKOption,
    TopPOption,
    backend,
    sampling_params,
    split_rows,
)


def sample(
    target: TargetOption,
    task_data: TaskDataOption,
    temperature: TemperatureOption,
    max_new_tokens: MaxNewTokensOption,
    out: Annotated[Path, typer.Option(help="samples to write (Parquet)")],
    tokens: Annotated[int, typer.Option(help="stop after this many tokens")] = 10_000,
    split: Annotated[str, typer.Option(help="split whose prompts are used")] = "test",
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    lead_words: LeadWordsOption = 0,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 0,
) -> None:
    """Decode with the target alone, for alpha by overlap and for its quality."""
    params = sampling_params(temperature, top_k, top_p)
    rows = split_rows(task_data, split, temperature, lead_words)

    from specdec.decoding.sample import sample_target
    from specdec.files import write_parquet

    model = backend(device, dtype, threads).load(target)
    write_parquet(out, sample_target(model, rows, params, max_new_tokens, tokens, seed))
