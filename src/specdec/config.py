"""A study's configuration: checked with one clear line a mistake, and unrolled into the cells of its grid."""

import difflib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import jsonschema
import yaml

from specdec.errors import UserError

TABLE_KINDS = ("unigram", "bigram")
MODEL_FREE = (*TABLE_KINDS, "copy")
TYPES = {"object": "a mapping", "array": "a list", "string": "text", "boolean": "true or false"}


def parse_text(value, schema: dict):
    """The configuration with text read as YAML where the schema wants no text.

    Snakemake hands on most of what ``--config`` gives as text: ``true``, and every number below another key.
    """
    types = schema.get("type", "string")
    if isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        default = other if isinstance(other, dict) else {}
        return {key: parse_text(item, known.get(key, default)) for key, item in value.items()}
    if isinstance(value, list):
        return [parse_text(item, schema.get("items", {})) for item in value]
    if isinstance(value, str) and "string" not in types:
        try:
            return yaml.safe_load(value)
        except yaml.YAMLError:
            return value
    return value


def check_schema(config: dict, schema: dict) -> None:
    """Raise ``UserError`` for the most telling breach of the schema, naming the key and what is allowed."""
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(config))
    if error is not None:
        raise UserError(f"config: {_explain(error)}")


def _explain(error: jsonschema.ValidationError) -> str:
    key, value, rule = _key(error.absolute_path), error.instance, error.validator
    meaning = error.schema.get("description", "")
    if rule == "additionalProperties":
        known = sorted(error.schema["properties"])
        unknown = next(name for name in value if name not in known)
        close = difflib.get_close_matches(str(unknown), known, 1)
        hint = f"did you mean {close[0]!r}?" if close else "remove it."
        name = _key([*error.absolute_path, unknown])
        return f"unknown key {name!r}; {hint} Known keys here: {', '.join(known)}"
    if rule == "required":
        missing = next(name for name in error.validator_value if name not in value)
        return f"key {_key([*error.absolute_path, missing])!r} is missing; add it"
    allowed = {
        "type": lambda: f"must be {_types(error.validator_value)}",
        "minimum": lambda: f"must be at least {error.validator_value}",
        "maximum": lambda: f"must be at most {error.validator_value}",
        "exclusiveMinimum": lambda: f"must be above {error.validator_value}",
        "enum": lambda: f"must be one of {', '.join(map(str, error.validator_value))}",
        "minItems": lambda: "must have at least one entry",
        "uniqueItems": lambda: "names a value twice; remove one",
        "pattern": lambda: f"must match {error.validator_value}",
    }.get(rule, lambda: error.message)()
    return f"{key} = {value!r} {allowed}" + (f" ({meaning})" if meaning else "")


def _key(path) -> str:
    """A dotted key with list positions in brackets: grid.gammas.neural[0]."""
    dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return dotted.lstrip(".") or "the file"


def _types(names: str | list[str]) -> str:
    names = [names] if isinstance(names, str) else names
    return " or ".join(TYPES.get(name, f"a {name}".replace("a integer", "an integer")) for name in names)


def check_references(config: dict) -> None:
    """Raise ``UserError`` where a name or a file that the configuration mentions does not exist."""
    for name in config["grid"]["tasks"]:
        _defined(name, config["tasks"], "grid.tasks", "tasks")
        task = config["tasks"][name]
        _file(task["file"], f"tasks.{name}.file")
        _defined(task["target"], config["models"], f"tasks.{name}.target", "models")
        for draft in task["drafts"]:
            if draft not in MODEL_FREE:
                _defined(draft, config["models"], f"tasks.{name}.drafts", "models", extra=MODEL_FREE)
    taken = sorted(set(config["models"]) & set(MODEL_FREE))
    if taken:
        raise UserError(f"config: models.{taken[0]}: this draft has no model; choose another name")
    for name in models_used(config):
        _check_model(config, name)


def _check_model(config: dict, name: str) -> None:
    model = config["models"][name]
    if not trained_here(config, name):
        for file in model_files(config, name):
            if not Path(file).is_file():
                raise UserError(
                    f"config: models.{name}.path: {file} does not exist; correct the path, or train the model"
                    " with --config retrain=true"
                )
        return
    for key in ("recipe", "tokenizer"):
        if key not in model:
            raise UserError(f"config: models.{name}.{key} is missing; add it, or the path of a trained model")
    _defined(model["tokenizer"], config["tokenizers"], f"models.{name}.tokenizer", "tokenizers")
    recipes = {f"models.{name}.recipe": model["recipe"]}
    recipes[f"tokenizers.{model['tokenizer']}.recipe"] = config["tokenizers"][model["tokenizer"]]["recipe"]
    for key, recipe in recipes.items():
        _file(recipe, key)
        for task in recipe_tasks(config, recipe):
            _defined(task, config["tasks"], f"{recipe}: tasks", "tasks")
            _file(config["tasks"][task]["file"], f"tasks.{task}.file")


def _defined(name: str, known: dict, key: str, section: str, extra: tuple[str, ...] = ()) -> None:
    if name not in known:
        choices = ", ".join([*known, *extra])
        raise UserError(f"config: {key}: {name!r} is not under {section}; define it or use one of: {choices}")


def _file(path: str, key: str) -> None:
    if not Path(path).is_file():
        raise UserError(f"config: {key} = {path!r}: no such file; the path is relative to the Snakefile")


def spell(value: float) -> str:
    """The one spelling of a number in a path: 1 and 1.0 are both ``1``."""
    return format(Decimal(str(value)).normalize(), "f")


def read_yaml(path: str | Path) -> dict:
    """A YAML mapping that the DAG's shape depends on; raises ``UserError`` when it is none."""
    try:
        value = yaml.safe_load(Path(path).read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML ({error}); correct it") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: must be a mapping of keys to values; correct it")
    return value


def recipe_tasks(config: dict, recipe: str) -> list[str]:
    """Names of the tasks whose training text a recipe reads: those it names, or the grid's."""
    return list(read_yaml(recipe).get("tasks") or config["grid"]["tasks"])


def draft_kind(draft: str) -> str:
    return draft if draft in MODEL_FREE else "neural"


def trained_here(config: dict, model: str) -> bool:
    """Whether the study trains the model, rather than taking it from its path."""
    return config["retrain"] or "path" not in config["models"][model]


def model_folder(config: dict, model: str) -> str:
    if trained_here(config, model):
        return f"results/{config['study']}/models/{model}"
    return config["models"][model]["path"].rstrip("/")


def tokenizer_file(config: dict, model: str) -> str:
    """The tokenizer that a model is trained with."""
    return f"results/{config['study']}/tokenizers/{config['models'][model]['tokenizer']}/tokenizer.json"


def model_files(config: dict, model: str) -> list[str]:
    """The files of a model that decoding reads."""
    folder = model_folder(config, model)
    return [f"{folder}/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json")]


def draft_path(config: dict, task: str, draft: str) -> str | None:
    """The folder or file that a draft is read from; None for copy, which needs none."""
    if draft in TABLE_KINDS:
        target = config["tasks"][task]["target"]
        return f"results/{config['study']}/ngrams/{task}/{target}/{draft}.safetensors"
    return None if draft in MODEL_FREE else model_folder(config, draft)


def draft_files(config: dict, task: str, draft: str) -> list[str]:
    """The files that a draft is read from."""
    if draft in MODEL_FREE:
        return [draft_path(config, task, draft)] if draft in TABLE_KINDS else []
    return model_files(config, draft)


def draft_spec(config: dict, task: str, draft: str) -> str:
    """A draft as the command line takes it: ``name=kind`` or ``name=kind:path``."""
    path = draft_path(config, task, draft)
    return f"{draft}={draft_kind(draft)}" + (f":{path}" if path else "")


def models_used(config: dict) -> list[str]:
    """Targets and neural drafts of the grid and, where they are trained here, their teachers."""
    tasks = [config["tasks"][name] for name in config["grid"]["tasks"]]
    found = [task["target"] for task in tasks]
    found += [draft for task in tasks for draft in task["drafts"] if draft not in MODEL_FREE]
    for name in found:
        teacher = config["models"].get(name, {}).get("teacher")
        if teacher is not None and trained_here(config, name):
            _defined(teacher, config["models"], f"models.{name}.teacher", "models")
            if teacher not in found:
                found.append(teacher)
    return list(dict.fromkeys(found))


def filters(config: dict) -> str:
    """Top-k and top-p as they stand in a path: empty, ``-k40``, ``-p0.9`` or both."""
    parts = (("k", config["grid"]["top_k"]), ("p", config["grid"]["top_p"]))
    return "".join(f"-{letter}{spell(value)}" for letter, value in parts if value is not None)


def sample_files(config: dict, task: str) -> list[str]:
    """The target's own outputs on a task, a file a temperature."""
    folder = f"results/{config['study']}/samples/{task}/{config['tasks'][task]['target']}"
    return [f"{folder}/t{spell(temperature)}.parquet" for temperature in config["grid"]["temperatures"]]


def pairs(config: dict) -> list[str]:
    """``task/target`` of every task of the grid."""
    return [f"{name}/{config['tasks'][name]['target']}" for name in config["grid"]["tasks"]]


def cells(config: dict) -> Iterator[str]:
    """Folder of every cell of the grid below ``results/<study>/``, in the configuration's order."""
    grid = config["grid"]
    for name in grid["tasks"]:
        task = config["tasks"][name]
        for draft in task["drafts"]:
            for temperature in grid["temperatures"]:
                for gamma in grid["gammas"][draft_kind(draft)]:
                    leaf = f"t{spell(temperature)}-g{gamma}{filters(config)}"
                    yield f"cells/{name}/{task['target']}/{draft}/{leaf}"
