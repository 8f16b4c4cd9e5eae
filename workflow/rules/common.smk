# The configuration, checked; what rules need to start a stage of the library.
import os
import re
import sys

from snakemake.utils import validate

# Jobs run this checkout's library with this interpreter, whether or not its environment is activated.
LIBRARY = f"{workflow.basedir}/src"
sys.path.insert(0, LIBRARY)
os.environ.update(
    PYTHONPATH=":".join(filter(None, [LIBRARY, os.environ.get("PYTHONPATH")])),
    PATH=f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH')}",
)

from specdec import config as study
from specdec.errors import UserError
from specdec.modules import stage_modules

SCHEMA = f"{workflow.basedir}/workflow/schemas/config.schema.yaml"
try:
    schema = study.read_yaml(SCHEMA)
    config |= study.parse_text(config, schema)
    study.check_schema(config, schema)
    validate(config, SCHEMA)  # fills in the defaults
    study.check_references(config)
except UserError as error:
    sys.exit(f"error: {error}")


wildcard_constraints:
    study=config["study"],
    task="[^/]+",
    target="[^/]+",
    draft="[^/]+",
    temperature=r"\d+(\.\d+)?",
    gamma=r"\d+",
    filters=r"(-k\d+)?(-p\d+(\.\d+)?)?",


# Where jobs that run models find torch, with --sdm conda.
ENGINE_ENV = f"../../envs/{'gpu' if config['engine']['device'].startswith('cuda') else 'cpu'}.yaml"


def all_cores(wildcards):
    """Every core that this Snakemake has; on a cluster, the threads that the job computes with."""
    return workflow.resource_settings.cores or config["engine"]["threads"]


def flags(name, values):
    """An option given once a value, as words for the shell."""
    return [word for value in values for word in (name, str(value))]


def options(section, *keys):
    """Keys of a section of the configuration as options, those that are null left out."""
    return [
        word
        for key in keys
        if section[key] is not None
        for word in (f"--{key.replace('_', '-')}", section[key])
    ]


def engine_options():
    return options(config["engine"], "device", "dtype", "threads")


def filter_options():
    return options(config["grid"], "top_k", "top_p")


def limit_options(wildcards):
    return options(config["tasks"][wildcards.task], "max_new_tokens", "lead_words")


def training_text(wildcards, recipe):
    """The prepared training text that a recipe reads."""
    return [
        f"results/{wildcards.study}/data/{task}/train.parquet" for task in study.recipe_tasks(config, recipe)
    ]


def teacher_files(wildcards):
    teacher = config["models"][wildcards.model].get("teacher")
    return study.model_files(config, teacher) if teacher else []


def all_draft_files(wildcards):
    """What the drafts of a task are read from."""
    task = wildcards.task
    return [
        file for draft in config["tasks"][task]["drafts"] for file in study.draft_files(config, task, draft)
    ]


def draft_specs(wildcards):
    """The drafts of a task as options."""
    task = wildcards.task
    return flags(
        "--draft", [study.draft_spec(config, task, draft) for draft in config["tasks"][task]["drafts"]]
    )


def table_files(name):
    names = [f"{table}.{kind}" for table in ("table2", "table3", "table4") for kind in ("csv", "md", "tex")]
    return [f"results/{name}/tables/{file}" for file in (*names, "all-cells.csv")]


def failed_logs(snakemake_logs):
    """Log files of failed jobs, as Snakemake's own logs name them, each once."""
    text = ""
    for path in snakemake_logs:
        with open(path) as lines:
            text += lines.read()
    return dict.fromkeys(re.findall(r"^ +log: (\S+) \(check log file", text, re.MULTILINE))


def last_line(path):
    """The last line of a job's log that says something."""
    if not os.path.exists(path):
        return "(no log)"
    with open(path, errors="replace") as lines:
        return ([line.strip() for line in lines if line.strip()] or ["(empty)"])[-1]
