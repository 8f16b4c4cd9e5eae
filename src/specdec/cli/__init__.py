"""Command line: one subcommand a stage, usable without Snakemake."""

import importlib
import os
import sys

import typer

from specdec.errors import UserError

STAGES: tuple[str, ...] = (
    "tokenizer",
    "train",
    "ngram",
    "sample",
    "overlap",
    "cost",
    "decode",
    "summarise",
    "tables",
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=__doc__,
)
for _stage in STAGES:
    app.command(_stage)(getattr(importlib.import_module(f"specdec.cli.{_stage}"), _stage))


def main() -> None:
    """Run a stage; a ``UserError`` becomes one line and exit code 2."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        app()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
