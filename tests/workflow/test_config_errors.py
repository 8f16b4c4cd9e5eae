"""A mistake in the configuration ends the run at once, with one line that names the key and the remedy."""

import pytest

from tests.workflow.conftest import SMOKE

# What is laid over the smoke study, what the line names, what it offers.
MISTAKES = {
    "unknown key": ("temperature: 1", "unknown key 'temperature'", "Known keys here"),
    "misspelt key": ("tasks: {ende: {exampels: 3}}", "tasks.ende.exampels", "did you mean 'examples'"),
    "gamma 0": ("grid: {gammas: {neural: [0]}}", "grid.gammas.neural[0] = 0", "at least 1"),
    "gamma 1.5": ("grid: {gammas: {copy: [1.5]}}", "grid.gammas.copy[0] = 1.5", "an integer"),
    "temperature -1": ("grid: {temperatures: [-1]}", "grid.temperatures[0] = -1", "at least 0"),
    "temperature warm": ("grid: {temperatures: [warm]}", "grid.temperatures[0] = 'warm'", "a number"),
    "temperature twice": ("grid: {temperatures: [1, 1.0]}", "grid.temperatures = [1, 1.0]", "twice"),
    "top_p 1.5": ("grid: {top_p: 1.5}", "grid.top_p = 1.5", "at most 1"),
    "no task": ("grid: {tasks: []}", "grid.tasks = []", "at least one entry"),
    "undefined task": ("grid: {tasks: [fren]}", "grid.tasks: 'fren'", "use one of: ende"),
    "missing task file": ("tasks: {ende: {file: a.yaml}}", "tasks.ende.file = 'a.yaml'", "no such file"),
    "undefined target": ("tasks: {ende: {target: huge}}", "tasks.ende.target: 'huge'", "under models"),
    "undefined draft": ("tasks: {ende: {drafts: [tiny]}}", "tasks.ende.drafts: 'tiny'", "bigram, copy"),
    "missing recipe": ("models: {lm-small: {recipe: a}}", "lm-small.recipe = 'a'", "no such file"),
    "undefined teacher": ("models: {lm-small: {teacher: a}}", "lm-small.teacher: 'a'", "under models"),
    "undefined tokenizer": ("models: {lm-small: {tokenizer: a}}", "lm-small.tokenizer: 'a'", "tokenizers"),
    "missing model": (
        "{retrain: false, grid: {tasks: [prose]}, models: {lm-target: {path: gone}}}",
        "path: gone/config.json does not exist",
        "retrain=true",
    ),
    "model named bigram": ("models: {bigram: {}}", "models.bigram", "choose another name"),
    "dtype float8": ("engine: {dtype: float8}", "engine.dtype = 'float8'", "float32, bfloat16"),
    "study in another folder": ("study: ../x", "study = '../x'", "must match"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_line_and_no_traceback(checkout, tmp_path, name):
    mistake, key, remedy = MISTAKES[name]
    file = tmp_path / "mistake.yaml"
    file.write_text(mistake + "\n")
    done = checkout.snakemake("--dry-run", *SMOKE, str(file))
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Config file ")]
    assert done.returncode != 0
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: config: ")
    assert key in lines[0]
    assert remedy in lines[0]


def test_values_given_on_the_command_line_are_read_as_yaml(checkout):
    arguments = ("grid={gammas: {neural: [2, 4]}, top_p: 0.9}", "seed=7")
    plan = checkout.plan(*SMOKE, "--config", *arguments)
    assert plan["decode"] == 14
    done = checkout.snakemake("--dry-run", *SMOKE, "--config", "grid={gammas: {neural: [0]}}")
    assert "error: config: grid.gammas.neural[0] = 0 must be at least 1" in done.stderr
