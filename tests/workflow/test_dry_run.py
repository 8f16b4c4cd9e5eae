"""The DAG as planned, before anything is downloaded or run."""

import pytest

from tests.workflow.conftest import SMOKE

# Tasks, temperatures, and the gammas of two neural drafts, unigram, bigram and copy.
DEMO_CELLS = 3 * 2 * (2 * 5 + 2 + 2 + 2)


def test_demo_plans_every_cell_from_committed_models(checkout):
    plan = checkout.plan()
    assert plan["decode"] == DEMO_CELLS
    assert plan["sample"] == 6
    assert plan["overlap"] == plan["cost"] == plan["prepare"] == 3
    assert plan["summarise"] == plan["tables"] == 1
    assert not {"train", "tokenizer"} & set(plan)


def test_retrain_trains_the_demo_models_by_the_same_rules(checkout):
    plan = checkout.plan("--config", "retrain=true")
    assert plan["train"] == 6
    assert plan["tokenizer"] == 1
    assert plan["decode"] == DEMO_CELLS


def test_smoke_plans_every_rule(checkout):
    rules = checkout.snakemake("--list-rules", *SMOKE).stdout.split()
    assert set(checkout.plan(*SMOKE)) == set(rules) - {"all"}


def test_temperature_has_one_path(checkout, tmp_path):
    study = tmp_path / "spelled.yaml"
    study.write_text("grid: {temperatures: [0.0, 1.0]}\n")
    done = checkout.snakemake("--dry-run", *SMOKE, str(study))
    assert "/t1-g3/records.parquet" in done.stdout + done.stderr
    assert "t1.0" not in done.stdout + done.stderr


def test_filters_have_a_path_of_their_own_and_reach_the_command(checkout, tmp_path):
    study = tmp_path / "filtered.yaml"
    study.write_text("grid: {top_k: 40, top_p: 0.9}\n")
    done = checkout.snakemake("--dry-run", "--printshellcmds", *SMOKE, str(study))
    assert "t1-g3-k40-p0.9/records.parquet" in done.stdout + done.stderr
    assert "--top-k 40 --top-p 0.9" in done.stdout + done.stderr


@pytest.mark.parametrize("profile", ["workstation", "slurm"])
def test_profiles_plan(checkout, profile):
    done = checkout.snakemake("--dry-run", *SMOKE, "--workflow-profile", f"workflow/profiles/{profile}")
    assert done.returncode == 0, done.stderr


def test_lint(checkout):
    done = checkout.snakemake("--lint", *SMOKE)
    assert done.returncode == 0, done.stderr


def test_every_rule_keeps_a_log_and_its_time(checkout):
    text = "".join(path.read_text() for path in sorted((checkout.root / "workflow/rules").glob("*.smk")))
    rules = text.count("\nrule ")
    assert rules == text.count("    log:\n") == text.count("    benchmark:\n") == text.count("    conda:\n")
