"""``specdec overlap``: alpha by overlap, all drafts and temperatures from one pass."""

from pathlib import Path
from typing import Annotated

import typer

from specdec.cli.common import (
    DeviceOption,
    DraftsOption,
    DtypeOption,
    TargetOption,
    ThreadsOption,
    TopKOption,
    TopPOption,
    backend,
    sampling_params,
)


def overlap(
    target: TargetOption,
    samples: Annotated[list[Path], typer.Option(help="target samples (Parquet); repeat for several")],
    drafts: DraftsOption,
    out: Annotated[Path, typer.Option(help="scores to write (Parquet)")],
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 0,
) -> None:
    """Score stored target samples with every draft."""
    import pandas as pd

    from specdec.analysis.overlap import score_samples
    from specdec.decoding.pair import DraftSpec, load_draft
    from specdec.files import read_parquet, write_parquet

    filters = sampling_params(1.0, top_k, top_p)
    specs = [DraftSpec.parse(text) for text in drafts]
    where = backend(device, dtype, threads)
    model = where.load(target)
    loaded = [load_draft(spec, model, where) for spec in specs]
    rows = pd.concat([read_parquet(path) for path in samples], ignore_index=True)
    write_parquet(out, score_samples(model, loaded, rows, filters))
