"""Options that several stages share."""

from pathlib import Path
from typing import Annotated

import typer

TargetOption = Annotated[str, typer.Option("--target", help="target: model folder or hub id")]
TaskDataOption = Annotated[Path, typer.Option("--task-data", help="prepared data folder of the task")]
TemperatureOption = Annotated[float, typer.Option(help="0 is argmax")]
TopKOption = Annotated[int, typer.Option(help="keep the k likeliest tokens; 0 is off")]
TopPOption = Annotated[float, typer.Option(help="keep the likeliest tokens up to this mass; 1 is off")]
MaxNewTokensOption = Annotated[int, typer.Option(help="length cap of an output, in tokens")]
SeedOption = Annotated[int, typer.Option(help="seed of every draw, together with the example id")]
LeadWordsOption = Annotated[
    int,
    typer.Option(help="at temperature 0, words of the reference that stand in for an empty prompt; 0 is off"),
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda or cuda:N")]
DtypeOption = Annotated[str, typer.Option(help="float32, bfloat16 or float16")]
ThreadsOption = Annotated[int, typer.Option(help="CPU threads of torch; 0 takes them all")]
DraftsOption = Annotated[list[str], typer.Option("--draft", help="name=kind[:path]; repeat for several")]


def backend(device: str, dtype: str, threads: int):
    """Set torch up and return where models run."""
    import torch

    from specdec.decoding.pair import Backend

    if threads:
        torch.set_num_threads(threads)
    return Backend(device, dtype, torch.get_num_threads())


def sampling_params(temperature: float, top_k: int, top_p: float):
    """Parameters from options; a value out of range becomes a ``UserError``."""
    from specdec.errors import UserError
    from specdec.sampling import SamplingParams

    try:
        return SamplingParams(temperature, top_k, top_p)
    except ValueError as error:
        raise UserError(str(error)) from None


def split_rows(task_data: Path, split: str, temperature: float, lead_words: int):
    """A split's rows, with lead-ins where the settings ask for them."""
    from specdec.decoding.pair import lead_in
    from specdec.files import read_parquet

    rows = read_parquet(task_data / f"{split}.parquet")
    return lead_in(rows, lead_words) if temperature == 0 else rows
