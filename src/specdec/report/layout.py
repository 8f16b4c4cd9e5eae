"""One table, three forms: CSV with full numbers, Markdown and LaTeX with rounded ones."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from specdec.files import atomic_path

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True)
class Column:
    """One column for readers. latex: its heading in LaTeX, raw. show: a row (named tuple) as text."""

    heading: str
    latex: str
    show: Callable[[object], str]


@dataclass(frozen=True)
class Table:
    """A table of a report.

    data: columns of ``rows`` that the CSV keeps. appendix: the paper's own rows as text, set apart.
    """

    name: str
    title: str
    rows: pd.DataFrame
    columns: list[Column]
    data: list[str]
    notes: list[str] = field(default_factory=list)
    appendix: pd.DataFrame | None = None
    appendix_source: str = ""

    def cells(self) -> pd.DataFrame:
        """The table as readers see it: text under plain headings."""
        shown = [[column.show(row) for column in self.columns] for row in self.rows.itertuples(index=False)]
        return pd.DataFrame(shown, columns=[column.heading for column in self.columns])


def number(value: float, digits: int, unit: str = "") -> str:
    """A rounded number with its unit; a dash where there is none."""
    return "-" if pd.isna(value) else f"{value:.{digits}f}{unit}"


def interval(row, name: str, digits: int, unit: str = "") -> str:
    """A rounded number with the interval of its ``_low`` and ``_high`` columns, where it has one."""
    value, low, high = (getattr(row, name + end) for end in ("", "_low", "_high"))
    if pd.isna(value) or pd.isna(low):
        return number(value, digits, unit)
    return f"{number(value, digits, unit)} [{low:.{digits}f}, {high:.{digits}f}]"


def write_table(table: Table, folder: str | Path) -> list[Path]:
    """Write a table as ``<name>.csv``, ``.md`` and ``.tex``, each whole or not at all; returns the paths."""
    folder = Path(folder)
    csv = write_csv(folder / f"{table.name}.csv", table.rows[table.data])
    texts = {folder / f"{table.name}.md": to_markdown(table), folder / f"{table.name}.tex": to_latex(table)}
    for path, text in texts.items():
        with atomic_path(path) as temporary:
            temporary.write_text(text, "utf-8")
    return [csv, *texts]


def write_csv(path: Path, frame: pd.DataFrame) -> Path:
    """Write a frame as CSV with six significant digits, whole or not at all."""
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")
    return path


def to_markdown(table: Table) -> str:
    """Title, table and notes; the paper's own rows follow as a table of their own."""
    parts = [f"# {table.title}", grid(table.cells()), *table.notes]
    if table.appendix is not None:
        heading = f"## The paper's own rows: {table.appendix_source}, not measured here"
        parts += [heading, grid(table.appendix)]
    return "\n\n".join(parts) + "\n"


def grid(cells: pd.DataFrame, style: str = "pipe") -> str:
    """Text cells in columns, as Markdown or, with another tabulate style, for a terminal."""
    return cells.to_markdown(index=False, tablefmt=style, disable_numparse=True)


def to_latex(table: Table) -> str:
    """A ``table`` environment for the booktabs and graphicx packages: caption, tabular, notes."""
    cells = table.cells().map(escape)
    cells.columns = [column.latex for column in table.columns]
    tabular = cells.to_latex(index=False, escape=False, column_format="l" * len(table.columns))
    lines = [
        "% Needs \\usepackage{booktabs,graphicx}.",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{escape(table.title)}}}",
        f"\\label{{tab:{table.name}}}",
        "\\resizebox{\\textwidth}{!}{%",
        tabular.rstrip("\n") + "}",
        *(f"\\par\\footnotesize {escape(note)}" for note in table.notes),
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(LATEX_SPECIAL.get(character, character) for character in text)
