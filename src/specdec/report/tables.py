"""Tables 2, 3 and 4 of a study, and one of quality, from its summary alone.

Each row names the records it came from, a path below the study's folder.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from specdec.config import spell
from specdec.errors import UserError
from specdec.files import read_parquet
from specdec.report import paper
from specdec.report.layout import Column, Table, interval, number, write_csv, write_table

KINDS = ("unigram", "bigram", "copy")
LEVEL = "95 % bootstrap intervals over examples in brackets."
FASTEST = (
    "gamma is the fastest of those measured; the choice favours it slightly, which the intervals leave out."
    " all-cells.csv has every gamma."
)
ALPHAS = (
    "alpha by overlap: mean of sum min(p, q) over tokens the target generated (Corollary 3.6), from"
    " overlap/TASK/TARGET.parquet. alpha by counts: accepted / tested drafts of the timed cell under Records,"
    " where testing stops at a rejection."
    " Where a copy draft proposes nothing it is not tested, while its overlap is 0."
)
WATERFALL = (
    "Theorem 3.8 takes alpha by overlap and c. Path: the measured acceptance at each position in place of"
    " equal, independent ones. Verification: t_p(gamma+1)/t_p(1) as measured in place of 1. Decode: measured"
    " without the prompt's share. Speed: measured, whole."
)
QUALITY = (
    "Both arms on the timed examples; the difference is speculative minus baseline, paired."
    " Target: its own outputs on all sampled test prompts."
)


def write_tables(study_dir: str | Path) -> dict[str, list[Path]]:
    """Write every table of a study as CSV, Markdown and LaTeX into its ``tables`` folder; paths by table
    name.

    Raises ``UserError`` when the summary is missing or empty.
    """
    study_dir = Path(study_dir)
    summary = read_summary(study_dir)
    folder = study_dir / "tables"
    written = {table.name: write_table(table, folder) for table in build_tables(summary)}
    written["all-cells"] = [write_csv(folder / "all-cells.csv", summary)]
    return written


def read_summary(study_dir: str | Path) -> pd.DataFrame:
    """The study's summary in the order of the tables: task, temperature, tables before models, cheap drafts
    first.

    Raises ``UserError`` when it is missing or has no cells.
    """
    file = Path(study_dir, "summary.parquet")
    summary = read_parquet(file)
    if summary.empty:
        raise UserError(f"{file}: no cells; run the decode stage, then summarise")
    kind = summary["draft_kind"].map(lambda name: KINDS.index(name) if name in KINDS else len(KINDS))
    cost = summary.groupby(["task", "target", "draft"])["c"].transform("median")
    order = ["task", "target", "temperature", "_kind", "_cost", "draft", "gamma"]
    ordered = summary.assign(_kind=kind, _cost=cost).sort_values(order, ignore_index=True)
    return ordered.drop(columns=["_kind", "_cost"])


def build_tables(summary: pd.DataFrame) -> list[Table]:
    """The study's tables, from an ordered summary."""
    best = fastest(summary)
    notes = provenance_notes(summary)
    return [
        _speed_table(best, [FASTEST, LEVEL, *notes]),
        _alpha_table(best, [ALPHAS, LEVEL, *notes]),
        _prediction_table(best, [WATERFALL, FASTEST, LEVEL, *notes]),
        _quality_table(best, [QUALITY, LEVEL, *notes]),
    ]


def fastest(summary: pd.DataFrame) -> pd.DataFrame:
    """The row of the highest measured speed of each (task, target, temperature, draft, filters), in order."""
    keys = ["task", "target", "temperature", "draft", "top_k", "top_p"]
    return summary.loc[sorted(summary.groupby(keys, dropna=False)["speedup"].idxmax())].reset_index(drop=True)


def provenance_notes(summary: pd.DataFrame) -> list[str]:
    """What the numbers were measured on, a line for each different answer."""
    keys = ["hardware", "device", "dtype", "threads", "seed", "commit", "versions"]
    notes = [
        f"Measured on {row.hardware or 'unnamed hardware'}; device {row.device}, {row.dtype},"
        f" {row.threads} threads; seed {row.seed}; commit {row.commit or 'unknown'}; {row.versions}."
        for row in summary[keys].drop_duplicates().itertuples()
    ]
    elsewhere = summary["cost_hardware"].fillna("") != summary["hardware"].fillna("")
    if elsewhere.any():
        names = ", ".join(sorted({str(name) for name in summary.loc[elsewhere, "cost_hardware"]}))
        notes.append(f"Beware: c and t_p were measured on other hardware than the speed ({names}).")
    return notes


def _identity(rows: pd.DataFrame, gamma: bool = True) -> list[Column]:
    columns = [
        Column("Task", "Task", lambda row: row.task),
        Column("Target", "Target", lambda row: row.target),
        Column("Draft", "Draft", lambda row: row.draft),
        Column("T", "$T$", lambda row: spell(row.temperature)),
    ]
    for name, label in (("top_k", "top-k"), ("top_p", "top-p")):
        if rows[name].notna().any():
            columns.append(Column(label, label, partial(_filter, name)))
    return [*columns, Column("gamma", r"$\gamma$", lambda row: str(row.gamma))] if gamma else columns


def _filter(name: str, row) -> str:
    value = getattr(row, name)
    return "" if pd.isna(value) else spell(value)


def _records() -> Column:
    return Column("Records", "Records", lambda row: row.cell)


def _speed_table(best: pd.DataFrame, notes: list[str]) -> Table:
    columns = [
        *_identity(best),
        Column("alpha", r"$\alpha$", lambda row: number(row.alpha_overlap, 3)),
        Column("Tokens a round", "Tokens a round", lambda row: number(row.tokens_per_round, 2)),
        Column("Baseline ms/token", "Baseline ms/token", lambda row: number(row.baseline_ms_per_tok, 2)),
        Column("Speed", "Speed", lambda row: interval(row, "speedup", 2, "X")),
        *_paper_columns(
            best, paper.paper_speed, paper.SPEED_SOURCE, lambda own: f"{own[1]}X (gamma {own[0]})"
        ),
        _records(),
    ]
    data = [*_KEYS, "alpha_overlap", "tokens_per_round", *_spread("speedup"), *_ABOUT]
    return Table(
        "table2",
        "Table 2: measured speed, speculative decoding against plain decoding of the same target",
        *(
            best,
            columns,
            data,
            notes,
            paper.printed(paper.TABLE_4).drop(columns=["c", "EXP"]),
            paper.SPEED_SOURCE,
        ),
    )


def _alpha_table(best: pd.DataFrame, notes: list[str]) -> Table:
    rows = best.sort_values(["task", "target"], kind="stable", ignore_index=True)
    columns = [
        *_identity(rows, gamma=False),
        Column("alpha by overlap", r"$\alpha$ by overlap", lambda row: interval(row, "alpha_overlap", 3)),
        Column("Tokens", "Tokens", lambda row: str(row.overlap_tok)),
        Column("alpha by counts", r"$\alpha$ by counts", lambda row: interval(row, "alpha_counts", 3)),
        Column("Tested", "Tested", lambda row: str(row.tested_tok)),
        *_paper_columns(rows, paper.paper_alpha, paper.ALPHA_SOURCE, str),
        _records(),
    ]
    data = [*_KEYS, *_spread("alpha_overlap"), "overlap_tok", *_spread("alpha_counts"), "tested_tok", *_ABOUT]
    return Table(
        "table3",
        "Table 3: alpha, the chance that a draft token is accepted",
        *(rows, columns, data, notes, paper.printed(paper.TABLE_3), paper.ALPHA_SOURCE),
    )


def _prediction_table(best: pd.DataFrame, notes: list[str]) -> Table:
    ratio = r"$t_p(\gamma+1)/t_p(1)$"
    columns = [
        *_identity(best),
        Column("alpha", r"$\alpha$", lambda row: number(row.alpha_overlap, 3)),
        Column("c", "$c$", lambda row: number(row.c, 3)),
        Column("t_p(gamma+1)/t_p(1)", ratio, lambda row: number(row.verification, 2)),
        Column("Best gamma", r"Best $\gamma$", lambda row: str(row.best_gamma)),
        Column("Theorem 3.8", "Theorem 3.8", lambda row: number(row.exp, 2, "X")),
        Column("+ path", "+ path", lambda row: number(row.exp_path, 2, "X")),
        Column("+ verification", "+ verification", lambda row: interval(row, "exp_verified", 2, "X")),
        Column("Decode", "Decode", lambda row: number(row.speedup_decode, 2, "X")),
        Column("Speed", "Speed", lambda row: interval(row, "speedup", 2, "X")),
        _records(),
    ]
    predicted = ["exp", "exp_path", *_spread("exp_verified"), *_spread("speedup_decode"), *_spread("speedup")]
    data = [*_KEYS, "alpha_overlap", "c", "verification", "best_gamma", *predicted, *_ABOUT]
    return Table(
        "table4",
        "Table 4: predicted speed against measured speed",
        *(best, columns, data, notes, paper.printed(paper.TABLE_4), paper.SPEED_SOURCE),
    )


def _quality_table(best: pd.DataFrame, notes: list[str]) -> Table:
    scored = best[best["metric"] != "none"]
    names = [name.removesuffix("_difference") for name in scored if name.endswith("_difference")]
    shown = ["score", "baseline", "speculative", *_spread("difference"), *_spread("on_test")]
    # A study without a scored task has a table without rows.
    parts = [_one_score(scored, name) for name in names] or [scored.reindex(columns=[*scored, *shown])]
    long = pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)
    columns = [
        *_identity(long),
        Column("Score", "Score", lambda row: row.score),
        Column("Baseline", "Baseline", lambda row: number(row.baseline, 1)),
        Column("Speculative", "Speculative", lambda row: number(row.speculative, 1)),
        Column("Difference", "Difference", lambda row: interval(row, "difference", 1)),
        Column("Target", "Target on test", lambda row: interval(row, "on_test", 1)),
        _records(),
    ]
    signatures = [f"{metric}: {text}" for metric, text in _signatures(scored)]
    warnings = list(scored["quality_warning"].dropna().unique())
    data = [*_KEYS, *shown, "quality_signature", *_ABOUT]
    title = "Quality: both arms against the references"
    return Table("quality", title, long, columns, data, [*signatures, *warnings, *notes])


def _one_score(scored: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows that have the score ``name``, its columns under the names that every score shares."""
    shared = {f"{name}_{arm}": arm for arm in ("baseline", "speculative", *_spread("difference"))}
    shared |= {f"{name}_target{end}": f"on_test{end}" for end in ("", "_low", "_high")}
    return scored[scored[f"{name}_baseline"].notna()].rename(columns=shared).assign(score=name)


def _signatures(scored: pd.DataFrame) -> list[tuple[str, str]]:
    return list(scored[["metric", "quality_signature"]].drop_duplicates().itertuples(index=False, name=None))


def _paper_columns(rows: pd.DataFrame, lookup: Callable, source: str, show: Callable) -> list[Column]:
    """A column of the paper's own values, only where at least one row is a row of the paper."""

    def own(row) -> str:
        found = lookup(row.task, row.target, row.draft, row.temperature)
        return "" if found is None else show(found)

    return [Column(source, source, own)] if any(own(row) for row in rows.itertuples()) else []


def _spread(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


_KEYS = ["task", "target", "draft", "draft_kind", "temperature", "top_k", "top_p", "gamma"]
_ABOUT = ["cell", "seed", "dtype", "device", "threads", "hardware", "commit", "versions"]
