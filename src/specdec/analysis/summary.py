"""One row a cell with everything that was measured and predicted for it: all that tables and figures read.

Names: ``_low`` and ``_high`` are the ends of a 95 % bootstrap interval over examples; ``_s``, ``_ms`` and
``_tok`` are units. The speed columns, from theory to measurement:

    exp            Theorem 3.8 with alpha by overlap and c
    exp_path       the same with tokens a round along the measured path of acceptances in place of i.i.d. ones
    exp_verified   the same with t_p(gamma + 1) / t_p(1) as measured in place of 1
    speedup_decode measured, the prompt's share of both arms taken out
    speedup        measured, the headline: ratio of summed seconds a token over the same examples
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from specdec.analysis import alpha, quality, speed, theory
from specdec.analysis.bootstrap import Estimate
from specdec.analysis.cells import Cell, Study, find_cells, read_cell
from specdec.errors import UserError
from specdec.files import write_parquet
from specdec.records import BASELINE, SPECULATIVE

IDENTITY = ("study", "task", "target", "draft", "draft_kind", "temperature", "gamma")
SETTINGS = ("metric", "max_new_tokens", "seed", "dtype", "device", "threads")


def summarise_study(
    study_dir: str | Path,
    cells: Iterable[str] = (),
    out: str | Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write the summary of a study, a row a cell, and return its path.

    cells: paths below the folder, ``cells/<task>/...``; none given means every cell that lies there. out:
    where to write, ``summary.parquet`` in the folder by default. progress: called with a line of text now
    and then. Raises ``UserError`` naming the file that is missing or broken.
    """
    names = [name.rstrip("/") for name in cells] or find_cells(study_dir)
    path = Path(out or Path(study_dir, "summary.parquet"))
    study = Study(study_dir)
    scored: dict[tuple, dict] = {}
    rows = []
    for done, name in enumerate(names, 1):
        rows.append(summarise_cell(study, read_cell(study_dir, name), scored))
        if done % 20 == 0 or done == len(names):
            progress(f"{done}/{len(names)} cells summarised")
    write_parquet(path, pd.DataFrame(rows))
    return path


def summarise_cell(study: Study, cell: Cell, scored: dict[tuple, dict]) -> dict:
    """The summary's row of one cell. scored: scores of targets' samples so far, filled as they are needed."""
    run = cell.run
    key = (run["task"], run["target"], run["temperature"], cell.filters)
    if key not in scored:
        scored[key] = _target_columns(study, cell)
    return {
        "cell": cell.name,
        **{name: run[name] for name in IDENTITY},
        # Off is one value, however a run spells it.
        "top_k": run["top_k"] or None,
        "top_p": None if run["top_p"] == 1 else run["top_p"],
        **_speed_columns(cell),
        **(alphas := _alpha_columns(study, cell)),
        **_prediction_columns(study, run, alphas["alpha_overlap"]),
        **_quality_columns(cell),
        **scored[key],
        **{name: run[name] for name in SETTINGS},
        **_provenance_columns(run["provenance"]),
    }


def _spread(name: str, estimate: Estimate) -> dict:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _speed_columns(cell: Cell) -> dict:
    records = cell.records
    return {
        "examples": records["id"].nunique(),
        "repeats": records["repeat"].nunique(),
        "baseline_tok": int(records.loc[records["arm"] == BASELINE, "tokens"].map(len).sum()),
        "speculative_tok": int(cell.speculative["tokens"].map(len).sum()),
        "baseline_ms_per_tok": speed.ms_per_token(records, BASELINE),
        "speculative_ms_per_tok": speed.ms_per_token(records, SPECULATIVE),
        **_spread("speedup", speed.speedup(records)),
        **_spread("speedup_decode", speed.speedup(records, prefill=False)),
        "identical_examples": speed.identical_examples(records),
    }


def _alpha_columns(study: Study, cell: Cell) -> dict:
    scored = study.overlap(cell.run)
    rounds = alpha.flat_rounds(cell.speculative)
    return {
        **_spread("alpha_overlap", alpha.overlap_alpha(scored)),
        "overlap_tok": int(scored["tokens"].sum()),
        **_spread("alpha_counts", alpha.counts_alpha(rounds)),
        "tested_tok": int(rounds["tested"].sum()),
        "accepted_tok": int(rounds["n_accepted"].sum()),
        "drafted_tok": int(rounds["n_drafted"].sum()),
        "rounds": len(rounds),
        **_spread("tokens_per_round", alpha.tokens_per_round(rounds)),
        "n_counts": alpha.accepted_counts(rounds, cell.run["gamma"]),
    }


def _prediction_columns(study: Study, run: dict, mean: float) -> dict:
    scored, cost, gamma = study.overlap(run), study.cost(run), run["gamma"]
    try:
        path = alpha.path_tokens_per_round(scored, gamma)
    except ValueError as error:
        file = study.root / "overlap" / run["task"] / f"{run['target']}.parquet"
        raise UserError(f"{file}: draft {run['draft']}: {error}; run the overlap stage again") from None
    c, verification = cost["c"], cost["t_p"][gamma]
    ends = {name: getattr(path, name) for name in ("value", "low", "high")}
    verified = Estimate(**{name: theory.round_speedup(x, gamma, c, verification) for name, x in ends.items()})
    return {
        "c": c,
        "c_hat": cost["c_hat"],
        "t_p_ratios": cost["t_p"],
        "verification": verification,
        "exp_tokens_per_round": theory.tokens_per_round(mean, gamma),
        **_spread("path_tokens_per_round", path),
        "exp": theory.speedup(mean, gamma, c),
        "exp_path": theory.round_speedup(path.value, gamma, c),
        **_spread("exp_verified", verified),
        "operations": theory.operations(mean, gamma, cost["c_hat"]),
        "best_gamma": int(theory.best_gamma(mean, c)),
        "best_gamma_verified": int(theory.best_gamma(mean, c, len(cost["t_p"]) - 1, cost["t_p"][1:])),
        "cost_hardware": _hardware(cost["provenance"]),
    }


def _quality_columns(cell: Cell) -> dict:
    columns = {}
    for name, arms in quality.score_arms(cell.run["metric"], cell.records).items():
        columns[f"{name}_baseline"] = arms.baseline
        columns[f"{name}_speculative"] = arms.speculative
        columns |= _spread(f"{name}_difference", arms.difference)
    return {**columns, "quality_signature": quality.signature(cell.run["metric"])}


def _target_columns(study: Study, cell: Cell) -> dict:
    """Scores of the target's own outputs on all held-out prompts that were sampled at this temperature."""
    run = cell.run
    samples = study.samples(run, cell.filters)
    warning = quality.pretokenised(samples["reference"]) if quality.score_names(run["metric"]) else None
    if warning:
        print(f"warning: {run['task']}: {warning}", file=sys.stderr)
    scores = quality.score_texts(run["metric"], samples["id"], samples["text"], samples["reference"])
    columns = {
        key: value for name, each in scores.items() for key, value in _spread(f"{name}_target", each).items()
    }
    return {**columns, "target_samples": len(samples), "quality_warning": warning}


def _provenance_columns(provenance: dict) -> dict:
    versions = {name: value for name, value in provenance.get("versions", {}).items() if value}
    return {
        "hardware": _hardware(provenance),
        "commit": provenance.get("commit"),
        "versions": ", ".join(f"{name} {value}" for name, value in versions.items()),
    }


def _hardware(provenance: dict) -> str | None:
    """Hardware in words: the values of the record, cores named."""
    parts = provenance.get("hardware", {})
    words = [f"{value} cores" if name == "cores" else str(value) for name, value in parts.items() if value]
    return ", ".join(words) or None
