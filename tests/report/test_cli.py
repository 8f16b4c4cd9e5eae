"""The two stages as they are started from a shell."""

import subprocess
import sys

import pytest

from tests.analysis.studies import build_one_cell


def run(*words) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "specdec", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_from_cells_to_tables(tmp_path):
    build_one_cell(tmp_path)
    summarised = run("summarise", "--study-dir", tmp_path)
    assert (summarised.returncode, summarised.stdout.strip()) == (0, str(tmp_path / "summary.parquet"))
    assert "1/1 cells" in summarised.stderr
    tables = run("tables", "--study-dir", tmp_path)
    assert tables.returncode == 0, tables.stderr
    assert "Table 2" in tables.stdout
    assert "cells/ende/seq2seq-target/seq2seq-small/t0-g3" in tables.stdout
    assert str(tmp_path / "tables" / "table4.tex") in tables.stdout.splitlines()


@pytest.mark.parametrize("stage", ["summarise", "tables"])
def test_one_clear_line_where_there_is_nothing(tmp_path, stage):
    found = run(stage, "--study-dir", tmp_path)
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert len(found.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
