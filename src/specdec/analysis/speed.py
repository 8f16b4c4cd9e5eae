"""Speed of the speculative arm over the baseline arm: a ratio of totals with a paired interval."""

import pandas as pd

from specdec.analysis.bootstrap import Estimate, divide, estimate
from specdec.records import BASELINE, SPECULATIVE


def speedup(records: pd.DataFrame, prefill: bool = True) -> Estimate:
    """Summed seconds a token of the baseline over those of the speculative arm, on the same examples.

    A ratio of totals: an example weighs by its tokens, and no ratio of one example is averaged. The
    interval resamples examples, both arms and all repeats of one together. prefill: False takes the
    prompt's share out of the seconds of both arms, which is the part that Theorem 3.8 speaks of. records:
    columns id, arm, tokens, seconds, prefill_s; both arms on the same ids (``cells.read_cell`` checks it).
    """
    seconds = records["seconds"] if prefill else records["seconds"] - records["prefill_s"]
    frame = records[["id", "arm"]].assign(seconds=seconds, tokens=records["tokens"].map(len))
    totals = frame.pivot_table(index="id", columns="arm", values=["seconds", "tokens"], aggfunc="sum")
    order = [("seconds", BASELINE), ("tokens", BASELINE), ("seconds", SPECULATIVE), ("tokens", SPECULATIVE)]
    return estimate(totals[order], lambda t: divide(t[..., 0] * t[..., 3], t[..., 1] * t[..., 2]))


def ms_per_token(records: pd.DataFrame, arm: str) -> float:
    """Milliseconds a token of one arm, prompt included: total over total."""
    rows = records[records["arm"] == arm]
    return 1e3 * float(rows["seconds"].sum()) / int(rows["tokens"].map(len).sum())


def identical_examples(records: pd.DataFrame) -> int:
    """How many (example, repeat) pairs have the same tokens in both arms; at temperature 0, all."""
    tokens = records.assign(tokens=records["tokens"].map(tuple)).set_index(["id", "repeat"])
    arms = [tokens.loc[tokens["arm"] == arm, "tokens"].sort_index() for arm in (BASELINE, SPECULATIVE)]
    return int((arms[0] == arms[1]).sum())
