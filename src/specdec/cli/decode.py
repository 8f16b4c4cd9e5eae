"""``specdec decode``: one cell, baseline and speculative arms turn by turn."""

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


def decode(
    target: TargetOption,
    task_data: TaskDataOption,
    draft: Annotated[str, typer.Option(help="name of the draft")],
    draft_kind: Annotated[str, typer.Option(help="neural, unigram, bigram or copy")],
    gamma: Annotated[int, typer.Option(help="draft tokens a round, at least 1")],
    temperature: TemperatureOption,
    max_new_tokens: MaxNewTokensOption,
    out: Annotated[Path, typer.Option(help="folder to write: records.parquet and run.json")],
    draft_path: Annotated[str | None, typer.Option(help="the draft's model folder or table")] = None,
    examples: Annotated[int, typer.Option(help="test examples to decode")] = 30,
    repeats: Annotated[int, typer.Option(help="times each example is decoded by each arm")] = 1,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    lead_words: LeadWordsOption = 0,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 0,
) -> None:
    """Decode the first test examples with the target alone and speculatively, and time both."""
    from specdec.errors import UserError

    params = sampling_params(temperature, top_k, top_p)
    if gamma < 1:
        raise UserError(f"gamma = {gamma}: a round drafts at least 1 token")
    rows = split_rows(task_data, "test", temperature, lead_words).head(examples)

    from specdec.decoding.cell import CellSettings, run_cell
    from specdec.decoding.pair import DraftSpec, load_draft
    from specdec.files import atomic_path, provenance, read_json, write_json
    from specdec.records import write_records

    spec = DraftSpec(draft, draft_kind, draft_path)
    where = backend(device, dtype, threads)
    model = where.load(target)
    settings = CellSettings(gamma, params, max_new_tokens, seed, repeats)
    records = run_cell(model, load_draft(spec, model, where), rows, settings)
    description = read_json(task_data / "data.json")
    folder = out.resolve().parts
    run = {
        "study": folder[-6],
        "task": description["task"],
        "target": folder[-3],
        "draft": draft,
        "draft_kind": draft_kind,
        "gamma": gamma,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "dtype": dtype,
        "device": device,
        "threads": where.threads,
        "metric": description["metric"],
        "max_new_tokens": max_new_tokens,
        "purpose": "timed",
        "provenance": provenance(),
    }
    with atomic_path(out) as temporary:
        temporary.mkdir()
        write_records(temporary / "records.parquet", records)
        write_json(temporary / "run.json", run)
