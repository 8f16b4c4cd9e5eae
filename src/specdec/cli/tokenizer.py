"""``specdec tokenizer``: train the tokenizer of a study."""

from pathlib import Path
from typing import Annotated

import typer


def tokenizer(
    recipe: Annotated[Path, typer.Option(help="tokenizer recipe (YAML)")],
    data: Annotated[list[Path], typer.Option(help="prepared data folder; repeat for several")],
    out: Annotated[Path, typer.Option(help="folder to write")],
) -> None:
    """Train a Unigram tokenizer on the training text of prepared data folders."""
    from specdec.errors import UserError
    from specdec.files import atomic_path, provenance, read_json, write_json
    from specdec.models.recipe import load_tokenizer_recipe
    from specdec.models.tokenizer import train_tokenizer, training_texts

    plan = load_tokenizer_recipe(recipe)
    folders = {read_json(folder / "data.json")["task"]: folder for folder in data}
    missing = [task for task in plan.tasks if task not in folders]
    if missing:
        raise UserError(f"{recipe}: no --data folder for task {missing[0]!r}; given: {', '.join(folders)}")
    chosen = [folders[task] for task in plan.tasks or folders]
    trained = train_tokenizer(training_texts(chosen), plan)
    with atomic_path(out) as temporary:
        trained.save_pretrained(temporary)
        facts = {
            "name": plan.name,
            "kind": plan.kind,
            "vocab_size": len(trained),
            "tasks": list(plan.tasks or folders),
        }
        write_json(temporary / "tokenizer_training.json", {**facts, **provenance()})
