"""``tables``: Tables 2, 3 and 4 of a study as CSV, Markdown and LaTeX."""

from pathlib import Path
from typing import Annotated

import typer


def tables(study_dir: Annotated[Path, typer.Option(help="Folder of the study, results/<study>.")]) -> None:
    """Write the tables of a study from its summary, and print Table 2 and where they are."""
    from specdec.report.layout import grid
    from specdec.report.tables import build_tables, read_summary, write_tables

    written = write_tables(study_dir)
    table = build_tables(read_summary(study_dir))[0]
    print(table.title, grid(table.cells(), "simple"), *table.notes, sep="\n\n")
    print()
    for paths in written.values():
        print(*paths, sep="\n")
