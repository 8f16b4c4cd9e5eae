"""``summarise``: one row a cell with everything measured and predicted."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def summarise(
    study_dir: Annotated[Path, typer.Option(help="Folder of the study, results/<study>.")],
    cell: Annotated[
        list[str] | None,
        typer.Option(
            help="Path of a cell below the study's folder, cells/...; repeat it. Default: all that are there."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Summary to write. Default: summary.parquet in the folder.")
    ] = None,
) -> None:
    """Summarise the cells of a study: speed, both alphas, predictions, quality, with intervals."""
    from specdec.analysis.summary import summarise_study

    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    print(summarise_study(study_dir, cell or (), out, progress))
