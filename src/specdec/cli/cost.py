"""``specdec cost``: what runs of the target and of each draft cost here."""

from pathlib import Path
from typing import Annotated

import typer

from specdec.cli.common import (
    DeviceOption,
    DraftsOption,
    DtypeOption,
    TargetOption,
    TaskDataOption,
    ThreadsOption,
    backend,
)


def cost(
    target: TargetOption,
    task_data: TaskDataOption,
    drafts: DraftsOption,
    gamma_max: Annotated[int, typer.Option(help="largest gamma of the study")],
    out: Annotated[Path, typer.Option(help="costs to write (JSON)")],
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 0,
) -> None:
    """Measure t_p(1) to t_p(gamma_max + 1), and t_q(1), c and c_hat of each draft."""
    from specdec.decoding.cost import measure_cost
    from specdec.decoding.pair import DraftSpec, load_draft
    from specdec.files import provenance, read_parquet, write_json

    specs = [DraftSpec.parse(text) for text in drafts]
    where = backend(device, dtype, threads)
    model = where.load(target)
    loaded = [load_draft(spec, model, where) for spec in specs]
    prompt = model.encode(read_parquet(task_data / "test.parquet")["prompt"].iloc[0])
    costs = measure_cost(model, loaded, prompt, gamma_max)
    write_json(
        out, {**costs, "dtype": dtype, "device": device, "threads": where.threads, "provenance": provenance()}
    )
