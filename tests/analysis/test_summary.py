"""The summary of a study on disk: its numbers, and one clear line for each thing that is wrong."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from specdec.analysis import theory
from specdec.analysis.summary import summarise_study
from specdec.errors import UserError
from specdec.files import read_json, write_json
from specdec.records import ExampleRecord, Round, write_records
from tests.analysis import studies
from tests.analysis.studies import TARGET, build_study

CELL = f"cells/ende/{TARGET}/seq2seq-small/t0-g3"


@pytest.fixture(scope="module")
def summary(tmp_path_factory) -> pd.DataFrame:
    folder = build_study(tmp_path_factory.mktemp("study"))
    return pd.read_parquet(summarise_study(folder)).set_index("cell")


@pytest.fixture
def study(tmp_path):
    """A study of one cell, quick to spoil."""
    studies.build_one_cell(tmp_path)
    return tmp_path


def read(folder) -> list[ExampleRecord]:
    rows = pd.read_parquet(folder / "records.parquet").to_dict("records")
    return [ExampleRecord(**{**row, "rounds": [Round(**each) for each in row["rounds"]]}) for row in rows]


def test_a_row_a_cell_that_points_at_its_records(summary):
    assert len(summary) == 24
    assert summary.index.is_unique
    assert CELL in summary.index


def test_columns_agree_with_each_other(summary):
    row = summary.loc[CELL]
    assert row["exp"] == pytest.approx(theory.speedup(row["alpha_overlap"], 3, row["c"]))
    assert row["operations"] == pytest.approx(theory.operations(row["alpha_overlap"], 3, row["c_hat"]))
    assert row["exp_path"] == pytest.approx(theory.round_speedup(row["path_tokens_per_round"], 3, row["c"]))
    assert row["exp_verified"] == pytest.approx(row["exp_path"] * (1 + 3 * 0.05) / (1.12 + 3 * 0.05))
    assert row["verification"] == pytest.approx(1.12)
    assert row["t_p_ratios"] == pytest.approx([1, 1.04, 1.08, 1.12])
    assert row["speedup"] == pytest.approx(row["baseline_ms_per_tok"] / row["speculative_ms_per_tok"])
    assert row["alpha_counts"] == pytest.approx(row["accepted_tok"] / row["tested_tok"])
    assert row["tokens_per_round"] == pytest.approx(row["speculative_tok"] / row["rounds"])
    assert sum(row["n_counts"]) == row["rounds"]
    assert row["best_gamma"] == theory.best_gamma(row["alpha_overlap"], 0.05)
    assert row["bleu_difference"] == 0
    assert row["identical_examples"] == 4


def test_intervals_hold_their_values(summary):
    for low in summary.filter(regex="_low$").columns:
        name = low.removesuffix("_low")
        ends = summary[[low, name, f"{name}_high"]].dropna().to_numpy()
        assert len(ends) > 0
        assert (np.diff(ends, axis=1) >= -1e-9).all(), name


def test_the_measurement_is_near_what_the_measured_costs_predict(summary):
    # The fixture's seconds are made of the cost file's, so the last prediction must come close to the
    # measurement.
    neural = summary[summary["draft_kind"] == "neural"]
    assert (neural["speedup_decode"] / neural["exp_verified"]).between(0.8, 1.25).all()


def test_metrics_stay_with_their_tasks(summary):
    assert summary.loc[summary["task"] == "docsum", "bleu_baseline"].isna().all()
    assert summary.loc[summary["task"] == "docsum", "rougeLsum_baseline"].notna().all()
    assert summary.loc[CELL, "quality_signature"].startswith("nrefs:1|")


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (None, None)])
def test_filters_that_are_off_are_one_value(study, top_k, top_p):
    run = read_json(study / CELL / "run.json")
    write_json(study / CELL / "run.json", {**run, "top_k": top_k, "top_p": top_p})
    assert pd.read_parquet(summarise_study(study)).loc[0, ["top_k", "top_p"]].isna().all()


def test_provenance_travels(summary):
    row = summary.loc[CELL]
    assert row["hardware"] == row["cost_hardware"] == "Test_CPU, 2 cores"
    assert row["commit"] == studies.PROVENANCE["commit"]
    assert row["versions"] == "python 3.11.9, torch 2.13.0"


def test_named_cells_only(tmp_path):
    studies.build_one_cell(tmp_path)
    studies.build_cell(tmp_path, "ende", "seq2seq-small", 1, 3)
    path = summarise_study(tmp_path, [f"{CELL}/"], tmp_path / "other.parquet")
    assert path == tmp_path / "other.parquet"
    assert pd.read_parquet(path)["cell"].tolist() == [CELL]


def test_filters_stand_in_the_paths(study):
    cell = studies.build_cell(study, "ende", "seq2seq-small", 0, 3, "-k40-p0.9")
    run = read_json(cell / "run.json")
    write_json(cell / "run.json", {**run, "top_k": 40, "top_p": 0.9})
    with pytest.raises(UserError, match=r"t0-k40-p0\.9\.parquet: no such file"):
        summarise_study(study)
    samples = study / "samples" / "ende" / TARGET
    shutil.copy(samples / "t0.parquet", samples / "t0-k40-p0.9.parquet")
    assert len(pd.read_parquet(summarise_study(study))) == 2


MISSING = [f"{CELL}/run.json", f"{CELL}/records.parquet", f"overlap/ende/{TARGET}.parquet"]
MISSING += [f"cost/ende/{TARGET}.json", f"samples/ende/{TARGET}/t0.parquet"]


@pytest.mark.parametrize("file", MISSING)
def test_a_missing_file_is_named(study, file):
    (study / file).unlink()
    with pytest.raises(UserError, match=f"{file}: no such file"):
        summarise_study(study)
    assert not (study / "summary.parquet").exists()


def test_no_cells(tmp_path):
    with pytest.raises(UserError, match="no cells there"):
        summarise_study(tmp_path)


def without(index):
    return lambda records: [record for i, record in enumerate(records) if i != index]


def changed(index, **values):
    return lambda records: [replace(each, **values) if i == index else each for i, each in enumerate(records)]


SPOILED = [
    (without(1), r"example ende-0 \(baseline arm\) has no partner"),
    (without(2), r"example ende-1 \(speculative arm\) has no partner"),
    (changed(3, id="ende-9"), r"example ende-1 \(baseline arm\) has no partner"),
    (changed(2, seconds=0.0), r"example ende-1 \(baseline arm\) has seconds that are not positive"),
    (changed(2, seconds=float("nan")), r"example ende-1 \(baseline arm\) has seconds that are not positive"),
    (changed(4, prefill_s=1e3), r"example ende-2 \(baseline arm\) has prefill seconds outside"),
    (
        changed(1, rounds=[Round(3, 3, 4)]),
        r"example ende-0 \(speculative arm\) has rounds that do not add up",
    ),
    (
        changed(1, rounds=[Round(3, 4, 24)]),
        r"example ende-0 \(speculative arm\) has a round that accepted more",
    ),
    (changed(0, tokens=[]), r"example ende-0 \(baseline arm\) has no tokens"),
    (changed(0, arm="hf"), r"example ende-0 \(hf arm\) is of an arm other than"),
    (lambda records: [*records, records[-1]], r"example ende-3 \(speculative arm\) is there twice"),
    (lambda records: [], "no records"),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILED)
def test_spoiled_records_name_file_and_example(study, spoil, message):
    file = study / CELL / "records.parquet"
    write_records(file, spoil(read(study / CELL)))
    with pytest.raises(UserError, match=f"{CELL}/records.parquet: {message}") as error:
        summarise_study(study)
    assert "\n" not in str(error.value)


SPOILED_RUNS = [
    ({"gamma": 5}, "is not that of its folder"),
    ({"draft": "seq2seq"}, "is not that of its folder"),
    ({"purpose": "profile"}, "only timed cells"),
    ({"metric": None}, "bleu, rouge, none"),
    ({"metric": ...}, "key 'metric' is missing"),
]


@pytest.mark.parametrize(("change", "message"), SPOILED_RUNS)
def test_spoiled_runs(study, change, message):
    run = {**read_json(study / CELL / "run.json"), **change}
    write_json(study / CELL / "run.json", {key: value for key, value in run.items() if value is not ...})
    with pytest.raises(UserError, match=message):
        summarise_study(study)


def test_gaps_in_overlap_and_cost(study):
    file = study / "cost" / "ende" / f"{TARGET}.json"
    cost = read_json(file)
    write_json(file, {**cost, "drafts": {}})
    with pytest.raises(UserError, match="draft seq2seq-small was not measured"):
        summarise_study(study)
    del cost["target"]["t_s"]["4"]
    write_json(file, cost)
    with pytest.raises(UserError, match=r"t_p\(4\) was not measured"):
        summarise_study(study)
    file.write_text(json.dumps([1]))
    with pytest.raises(UserError, match="not a cost file"):
        summarise_study(study)
    scored = study / "overlap" / "ende" / f"{TARGET}.parquet"
    frame = pd.read_parquet(scored)
    frame[frame["draft"] != "seq2seq-small"].to_parquet(scored)
    with pytest.raises(UserError, match="nothing scored for draft seq2seq-small at temperature 0"):
        summarise_study(study)
    frame.drop(columns="betas").to_parquet(scored)
    with pytest.raises(UserError, match="column 'betas' is missing"):
        summarise_study(study)
    frame.assign(betas=[[1.5]] * len(frame)).to_parquet(scored)
    studies.build_cost(study, "ende")
    with pytest.raises(UserError, match=rf"{TARGET}\.parquet: draft seq2seq-small: acceptance"):
        summarise_study(study)


def test_pretokenised_references_are_warned_of(study, capsys):
    file = study / "samples" / "ende" / TARGET / "t0.parquet"
    frame = pd.read_parquet(file)
    frame.assign(reference="Das ist gut .").to_parquet(file)
    row = pd.read_parquet(summarise_study(study)).iloc[0]
    assert "pretokenised" in row["quality_warning"]
    assert "warning: ende" in capsys.readouterr().err
