"""The smoke study, run once from download to tables; then what a second run and an edit would do."""

import csv
import json

import pandas as pd
import pytest

from tests.workflow.conftest import SMOKE, copy_checkout

DRAFTS = {"ende": ["seq2seq-small", "unigram", "copy"], "prose": ["lm-small", "bigram"]}
ROWS = {(task, draft, temperature) for task in DRAFTS for draft in DRAFTS[task] for temperature in (0, 1)}
AFTER_DECODING = {"summarise", "tables"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A checkout in which the smoke study has run, and what that run printed."""
    checkout = copy_checkout(tmp_path_factory.mktemp("smoke"))
    done = checkout.snakemake("--cores", "2", *SMOKE, timeout_s=850)
    printed = done.stdout + done.stderr
    logs = "\n".join(f"== {p}\n{p.read_text()[-2000:]}" for p in checkout.root.glob("logs/smoke/**/*.log"))
    assert done.returncode == 0, f"{printed[-6000:]}\n{logs[-12000:]}"
    return checkout, printed


@pytest.fixture
def results(finished):
    return finished[0].root / "results/smoke"


def test_the_run_ends_with_where_the_tables_are(finished, results):
    for table in ("table2", "table3", "table4"):
        assert f"results/smoke/tables/{table}.md" in finished[1]
        for kind in ("csv", "md", "tex"):
            assert (results / f"tables/{table}.{kind}").stat().st_size > 0


def test_every_cell_has_a_row_with_measured_numbers(results):
    summary = pd.read_parquet(results / "summary.parquet")
    assert {(row.task, row.draft, row.temperature) for row in summary.itertuples()} == ROWS
    assert len(summary) == len(ROWS)
    assert summary["alpha_overlap"].between(0, 1).all()
    assert (summary["speedup"] > 0).all()
    assert (summary["c"] > 0).all()
    assert (summary["overlap_tok"] >= 1).all()


def test_greedy_arms_agree_token_by_token(results):
    greedy = pd.read_parquet(results / "summary.parquet").query("temperature == 0")
    assert (greedy["identical_examples"] == greedy["examples"]).all()


def test_every_number_leads_to_a_record(results):
    with open(results / "tables/table2.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(ROWS)
    for cell in pd.read_parquet(results / "summary.parquet")["cell"]:
        run = json.loads((results / cell / "run.json").read_text())
        assert run["provenance"]["versions"]["torch"]
        assert (results / cell / "records.parquet").is_file()


def test_every_job_left_a_log_and_its_time(finished):
    folder = finished[0].root / "logs"
    logs, times = (sorted(p.with_suffix("") for p in folder.rglob(f"*{kind}")) for kind in (".log", ".tsv"))
    assert logs == times
    assert {p.relative_to(folder / "smoke").parts[0] for p in logs if "wheels" not in p.parts} >= {
        *("prepare", "tokenizer", "train", "ngram", "sample", "overlap", "cost", "decode"),
        *("summarise", "tables"),
    }


def test_nothing_half_written_is_left(results):
    assert not list(results.rglob(".*"))


def test_a_second_run_does_nothing(finished):
    checkout, _ = finished
    assert checkout.plan(*SMOKE) == {}
    done = checkout.snakemake("--cores", "2", *SMOKE)
    assert "Nothing to be done" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "rules"),
    [
        ("report/layout.py", {"tables"}),
        ("analysis/speed.py", AFTER_DECODING),
        ("decoding/cell.py", {"decode", *AFTER_DECODING}),
        ("decoding/cost.py", {"cost", *AFTER_DECODING}),
        ("decoding/ngram.py", {"ngram", "sample", "overlap", "cost", "decode", *AFTER_DECODING}),
        ("cli/__init__.py", set()),
    ],
)
def test_an_edit_reruns_what_depends_on_it_and_a_touch_nothing(finished, module, rules):
    checkout, _ = finished
    path = checkout.root / "src/specdec" / module
    before = path.read_text()
    path.touch()
    assert checkout.plan(*SMOKE) == {}
    try:
        path.write_text(before + "\n# edited\n")
        assert set(checkout.plan(*SMOKE)) == rules
    finally:
        path.write_text(before)


def test_a_new_gamma_adds_its_cells_alone(finished, tmp_path):
    checkout, _ = finished
    study = tmp_path / "wider.yaml"
    study.write_text("grid: {gammas: {neural: [2, 3]}}\n")
    assert checkout.plan(*SMOKE, str(study)) == {"decode": 4, "summarise": 1, "tables": 1}
