"""The tables of a fixed study against golden files, and where the paper's own values may stand.

After a change that is meant: ``python -m tests.report.test_tables`` writes the golden files anew; read the
diff.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from specdec.analysis.summary import summarise_study
from specdec.errors import UserError
from specdec.report import paper
from specdec.report.layout import Column, Table, escape, grid, interval, number, to_latex, to_markdown
from specdec.report.tables import build_tables, fastest, provenance_notes, read_summary, write_tables
from tests.analysis.studies import build_study

GOLDEN = Path(__file__).with_name("golden")
NAMES = [f"{name}.{kind}" for name in ("table2", "table3", "table4") for kind in ("csv", "md", "tex")]


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = build_study(tmp_path_factory.mktemp("study"))
    summarise_study(folder)
    write_tables(folder)
    return folder


@pytest.fixture
def summary(study) -> pd.DataFrame:
    return read_summary(study)


@pytest.mark.parametrize("name", NAMES)
def test_golden_files(study, name):
    assert (study / "tables" / name).read_text() == (GOLDEN / name).read_text()


def test_every_row_leads_to_its_records(study):
    for table in ("table2", "table3", "table4", "quality", "all-cells"):
        rows = pd.read_csv(study / "tables" / f"{table}.csv")
        assert len(rows) > 0
        assert all((study / cell / "records.parquet").is_file() for cell in rows["cell"])


def test_all_gammas_are_in_the_longer_file(study):
    rows = pd.read_csv(study / "tables" / "all-cells.csv")
    assert len(rows) == 24
    best = pd.read_csv(study / "tables" / "table2.csv")
    assert best.set_index(["task", "draft", "temperature"]).index.is_unique
    keys = ["task", "draft", "temperature"]
    assert (
        best.set_index(keys)["speedup"] == rows.groupby(keys)["speedup"].max()[best.set_index(keys).index]
    ).all()


def test_table_3_has_every_draft_at_both_temperatures(study):
    rows = pd.read_csv(study / "tables" / "table3.csv")
    found = set(rows[["task", "draft", "temperature"]].itertuples(index=False, name=None))
    assert len(found) == len(rows) == 12


def test_the_papers_speeds_stay_out_of_our_rows(study):
    for name in ("table2", "table3", "table4"):
        own, _, papers = (study / "tables" / f"{name}.md").read_text().partition("## The paper's own rows")
        assert "T5" not in own
        assert "paper (" not in own
        assert "not measured here" in papers
        assert "T5" not in (study / "tables" / f"{name}.csv").read_text()


def test_a_row_of_the_paper_gets_its_column(summary):
    rows = summary.assign(target="t5-xxl", draft=summary["draft"].replace("seq2seq-small", "t5-small"))
    speed, alpha, *_ = build_tables(rows)
    shown = speed.cells()
    column = shown.loc[(shown["Task"] == "ende") & (shown["Draft"] == "t5-small"), paper.SPEED_SOURCE]
    assert column.tolist() == ["3.4X (gamma 7)", "2.6X (gamma 7)"]
    assert (shown.loc[shown["Task"] == "docsum", paper.SPEED_SOURCE] == "").all()
    shown = alpha.cells()
    found = shown.loc[shown["Task"] == "ende"].set_index(["Draft", "T"])[paper.ALPHA_SOURCE]
    assert found[("unigram", "1")] == "0.07"
    assert found[("t5-small", "0")] == "0.75"
    assert found[("copy", "0")] == ""


@pytest.mark.parametrize("names", [("ende", "t5-11b", "t5-small"), ("ende", "seq2seq-target", "unigram")])
def test_substitutes_match_no_row_of_the_paper(names):
    assert paper.paper_speed(*names, 0) is None
    assert paper.paper_alpha(*names, 0) is None


def test_the_paper_has_no_other_temperatures():
    assert paper.paper_speed("cnn-dm", "t5-xxl", "t5-base", 1) == (3, 2.2)
    assert paper.paper_speed("cnn-dm", "t5-xxl", "t5-base", 0.5) is None
    assert paper.paper_alpha("lm1b", "gpt-like-97m", "gpt-like-6m", 1) == 0.89
    assert paper.paper_alpha("lm1b", "gpt-like-97m", "gpt-like-6m", 0.5) is None


def test_filters_get_columns_and_cells_of_their_own(summary):
    filtered = pd.concat([summary, summary.assign(top_k=40.0, speedup=9.0)], ignore_index=True)
    assert len(fastest(filtered)) == 2 * len(fastest(summary))
    shown = build_tables(filtered)[0].cells()
    assert set(shown["top-k"]) == {"", "40"}
    assert "top-p" not in shown


def test_hardware_is_named_and_a_mix_is_told(summary):
    assert len(provenance_notes(summary)) == 1
    assert provenance_notes(summary)[0].startswith(
        "Measured on Test_CPU, 2 cores; device cpu, float32, 2 threads;"
    )
    mixed = summary.assign(commit=["a"] * 12 + ["b"] * 12, cost_hardware="Other")
    assert len(provenance_notes(mixed)) == 3
    assert "other hardware than the speed (Other)" in provenance_notes(mixed)[-1]


def test_a_study_without_metrics_still_has_a_quality_table(summary):
    scores = summary.filter(regex="^(bleu|rouge)").columns
    quality = build_tables(summary.assign(metric="none").drop(columns=scores))[-1]
    assert quality.name == "quality"
    assert quality.rows.empty
    assert "| Baseline" in to_markdown(quality)
    assert "Baseline" in to_latex(quality)
    assert quality.rows[quality.data].empty


def test_missing_or_empty_summary(tmp_path, study):
    with pytest.raises(UserError, match=r"summary\.parquet: no such file"):
        write_tables(tmp_path)
    pd.read_parquet(study / "summary.parquet").iloc[:0].to_parquet(tmp_path / "summary.parquet")
    with pytest.raises(UserError, match="no cells"):
        write_tables(tmp_path)
    assert not (tmp_path / "tables").exists()


def test_latex_escapes_what_would_break_it():
    assert escape(r"a_b & 5% #1 {x} ~ ^ \ $") == (
        r"a\_b \& 5\% \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \$"
    )
    rows = pd.DataFrame({"name": ["a_b"]})
    table = Table(
        "t", "100 %", rows, [Column("x", r"$\alpha$", lambda row: row.name)], ["name"], ["50 % of it"]
    )
    text = to_latex(table)
    assert r"\caption{100 \%}" in text
    assert r"$\alpha$ \\" in text
    assert r"a\_b \\" in text
    assert r"50 \% of it" in text


def test_numbers_and_intervals_as_text():
    row = next(pd.DataFrame({"x": [1.236], "x_low": [1.1], "x_high": [1.4]}).itertuples())
    assert interval(row, "x", 2, "X") == "1.24X [1.10, 1.40]"
    assert interval(row._replace(x_low=float("nan")), "x", 1) == "1.2"
    assert number(float("nan"), 2, "X") == "-"
    assert grid(pd.DataFrame({"T": ["1.0"]}), "simple").splitlines()[-1].strip() == "1.0"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        summarise_study(build_study(Path(scratch)))
        write_tables(scratch)
        GOLDEN.mkdir(exist_ok=True)
        for golden in NAMES:
            shutil.copy(Path(scratch, "tables", golden), GOLDEN / golden)
    sys.exit()
