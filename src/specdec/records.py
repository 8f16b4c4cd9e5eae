"""What decoding leaves behind: one record an example and arm, with its rounds."""

from dataclasses import asdict, dataclass, field

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from specdec.files import atomic_path, read_parquet

BASELINE, SPECULATIVE = "baseline", "speculative"


@dataclass(frozen=True)
class Round:
    """One round of Algorithm 1.

    n_drafted: draft tokens the target verified (fewer than gamma near the length cap, or where a draft ended the
    text). n_accepted: those accepted. emitted: tokens the round added, the correction or bonus token included.
    """

    n_drafted: int
    n_accepted: int
    emitted: int


@dataclass(frozen=True)
class Generation:
    """One decoded sequence. tokens: new token ids, the end token included. stop: "eos" or "length"."""

    tokens: list[int]
    stop: str
    rounds: list[Round] = field(default_factory=list)


@dataclass(frozen=True)
class ExampleRecord:
    """One example decoded by one arm.

    seconds: from before the prefill to the last token; prefill_s: the part of it spent on the prompt.
    """

    id: str
    arm: str
    repeat: int
    seed: int
    prompt_tok: int
    tokens: list[int]
    text: str
    reference: str
    stop: str
    seconds: float
    prefill_s: float
    rounds: list[Round]


RECORD_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("arm", pa.string()),
        ("repeat", pa.int32()),
        ("seed", pa.int64()),
        ("prompt_tok", pa.int32()),
        ("tokens", pa.list_(pa.int32())),
        ("text", pa.string()),
        ("reference", pa.string()),
        ("stop", pa.string()),
        ("seconds", pa.float64()),
        ("prefill_s", pa.float64()),
        (
            "rounds",
            pa.list_(
                pa.struct([("n_drafted", pa.int32()), ("n_accepted", pa.int32()), ("emitted", pa.int32())])
            ),
        ),
    ]
)


def write_records(path, records: list[ExampleRecord]) -> None:
    """Write records as Parquet, whole or not at all."""
    table = pa.Table.from_pylist([asdict(record) for record in records], schema=RECORD_SCHEMA)
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary)


def read_records(path) -> pd.DataFrame:
    """Read records, one row each; raises ``UserError`` when the file is missing or broken."""
    return read_parquet(path)
