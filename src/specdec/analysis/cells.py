"""The files of a study, read and checked: cells, overlap, cost and samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from specdec.config import spell
from specdec.errors import UserError
from specdec.files import read_json, read_parquet
from specdec.records import BASELINE, RECORD_SCHEMA, SPECULATIVE

ARMS = (BASELINE, SPECULATIVE)
RUN_KEYS = (
    *("study", "task", "target", "draft", "draft_kind", "gamma", "temperature", "top_k", "top_p", "seed"),
    *("dtype", "device", "threads", "metric", "max_new_tokens", "purpose", "provenance"),
)


@dataclass(frozen=True)
class Cell:
    """One cell. name: its path below the study's folder; filters: the part of it on top-k and top-p."""

    name: str
    filters: str
    run: dict
    records: pd.DataFrame

    @cached_property
    def speculative(self) -> pd.DataFrame:
        return self.records[self.records["arm"] == SPECULATIVE]


def _filters(name: str, run: dict) -> str | None:
    """What a cell's path says of top-k and top-p (``-k40``); None where the path is not that of the run."""
    expected = (
        f"cells/{run['task']}/{run['target']}/{run['draft']}/t{spell(run['temperature'])}-g{run['gamma']}"
    )
    rest = name.removeprefix(expected)
    return rest if rest != name and (not rest or rest[0] == "-") else None


def find_cells(study_dir: str | Path) -> list[str]:
    """Every cell of a study, as paths below its folder. Raises ``UserError`` where there is none."""
    root = Path(study_dir)
    found = {
        path.parent for path in root.glob("cells/*/*/*/*/*") if path.name in ("run.json", "records.parquet")
    }
    if not found:
        raise UserError(f"{root / 'cells'}: no cells there; run the decode stage first")
    return sorted(str(path.relative_to(root)) for path in found)


def read_cell(study_dir: str | Path, name: str) -> Cell:
    """Read a cell and check it.

    Raises ``UserError``, naming file and example, on missing files, keys or columns, a cell in the wrong
    folder, an example that one arm lacks or has twice, seconds that are not positive, and rounds that
    contradict the tokens.
    """
    folder = Path(study_dir, name)
    run = read_json(folder / "run.json")
    missing = [key for key in RUN_KEYS if key not in run]
    if missing:
        raise UserError(f"{folder / 'run.json'}: key {missing[0]!r} is missing; run the decode stage again")
    if run["purpose"] != "timed":
        raise UserError(
            f"{folder / 'run.json'}: purpose is {run['purpose']!r}; only timed cells are summarised"
        )
    filters = _filters(name, run)
    if filters is None:
        raise UserError(
            f"{folder / 'run.json'}: task, target, draft, temperature or gamma is not that of its folder;"
            " decode the cell again"
        )
    file = folder / "records.parquet"
    records = _columns(read_parquet(file), RECORD_SCHEMA.names, file)
    check_records(records, file)
    return Cell(name, filters, run, records)


def check_records(records: pd.DataFrame, file: str | Path) -> None:
    """Raise ``UserError``, naming file and example, unless both arms decoded and timed the same examples."""

    def refuse(bad: pd.Series, problem: str) -> None:
        if bad.any():
            row = records[bad].iloc[0]
            raise UserError(
                f"{file}: example {row['id']} ({row['arm']} arm) {problem}; decode the cell again"
            )

    if records.empty:
        raise UserError(f"{file}: no records; decode the cell again")
    refuse(~records["arm"].isin(ARMS), f"is of an arm other than {' or '.join(ARMS)}")
    refuse(records.duplicated(["id", "arm", "repeat"]), "is there twice in one repeat")
    arms = records.groupby(["id", "repeat"])["arm"].transform("nunique")
    refuse(arms < len(ARMS), "has no partner in the other arm")
    refuse(~(np.isfinite(records["seconds"]) & (records["seconds"] > 0)), "has seconds that are not positive")
    inside = (records["prefill_s"] >= 0) & (records["prefill_s"] < records["seconds"])
    refuse(~inside, "has prefill seconds outside its seconds")
    lengths = records["tokens"].map(len)
    refuse(lengths == 0, "has no tokens")
    emitted = records["rounds"].map(lambda rounds: sum(each["emitted"] for each in rounds))
    refuse(
        (records["arm"] == SPECULATIVE) & (emitted != lengths), "has rounds that do not add up to its tokens"
    )
    sane = records["rounds"].map(lambda rounds: all(0 <= r["n_accepted"] <= r["n_drafted"] for r in rounds))
    refuse(~sane, "has a round that accepted more than it drafted")


class Study:
    """What was measured on targets and drafts of a study, each file read once."""

    def __init__(self, study_dir: str | Path):
        self.root = Path(study_dir)
        self._read: dict[Path, object] = {}

    def overlap(self, run: dict) -> pd.DataFrame:
        """Scored samples of a cell's draft at its temperature. Raises ``UserError`` where there are none."""
        file = self.root / "overlap" / run["task"] / f"{run['target']}.parquet"
        wanted = ("draft", "temperature", "id", "tokens", "beta_sum", "betas")
        frame = self._once(file, lambda: _columns(read_parquet(file), wanted, file))
        rows = frame[(frame["draft"] == run["draft"]) & (frame["temperature"] == run["temperature"])]
        if rows.empty:
            where = f"draft {run['draft']} at temperature {spell(run['temperature'])}"
            raise UserError(f"{file}: nothing scored for {where}; run the overlap stage with it")
        return rows

    def cost(self, run: dict) -> dict:
        """Costs of a cell's target and draft: c, c_hat, t_p (list of t_p(k) / t_p(1), k = 1 ...), provenance.

        Raises ``UserError`` where the draft, or t_p(k) up to gamma + 1, was not measured.
        """
        file = self.root / "cost" / run["task"] / f"{run['target']}.json"
        measured = self._once(file, lambda: read_json(file))
        try:
            seconds, drafts = measured["target"]["t_s"], measured["drafts"]
        except (KeyError, TypeError):
            raise UserError(f"{file}: not a cost file; run the cost stage again") from None
        if run["draft"] not in drafts:
            raise UserError(f"{file}: draft {run['draft']} was not measured; run the cost stage with it")
        widths = range(1, max(len(seconds), run["gamma"] + 1) + 1)
        absent = [k for k in widths if str(k) not in seconds]
        if absent:
            raise UserError(f"{file}: t_p({absent[0]}) was not measured; run cost with a higher --gamma-max")
        draft = drafts[run["draft"]]
        return {
            "c": draft["c"],
            "c_hat": draft["ops_ratio"],
            "t_p": [seconds[str(k)] / seconds["1"] for k in widths],
            "provenance": measured.get("provenance", {}),
        }

    def samples(self, run: dict, filters: str) -> pd.DataFrame:
        """The target's own outputs at a cell's temperature and filters, with their references."""
        folder = self.root / "samples" / run["task"] / run["target"]
        file = folder / f"t{spell(run['temperature'])}{filters}.parquet"
        return self._once(file, lambda: _columns(read_parquet(file), ("id", "text", "reference"), file))

    def _once(self, file: Path, read):
        if file not in self._read:
            self._read[file] = read()
        return self._read[file]


def _columns(frame: pd.DataFrame, wanted: Sequence[str], file: Path) -> pd.DataFrame:
    missing = [column for column in wanted if column not in frame]
    if missing:
        raise UserError(f"{file}: column {missing[0]!r} is missing; delete the file and run its stage again")
    return frame
