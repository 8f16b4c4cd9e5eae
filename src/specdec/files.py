"""Files between stages: written whole or not at all, hashed, and traceable to a commit."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd

from specdec.errors import UserError

RECORDED_PACKAGES = (
    "specdec",
    "torch",
    "transformers",
    "tokenizers",
    "datasets",
    "numpy",
    "pandas",
    "snakemake",
)


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it there on success, remove it on failure.

    The caller creates a file or a folder at the yielded path. An existing folder at ``path`` is replaced.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        temporary = holder / path.name
        yield temporary
        if path.is_dir():
            os.rename(path, holder / "replaced")
        os.replace(temporary, path)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def write_json(path: str | Path, value) -> None:
    """Write ``value`` as indented JSON, whole or not at all; NaN is refused."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: str | Path):
    """Read JSON; raises ``UserError`` when the file is missing or broken."""
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run the stage that makes it first") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); delete it and run the stage again") from None


def write_parquet(path: str | Path, frame: pd.DataFrame) -> None:
    """Write ``frame`` as Parquet, whole or not at all."""
    with atomic_path(path) as temporary:
        frame.to_parquet(temporary, index=False)


def read_parquet(path: str | Path) -> pd.DataFrame:
    """Read Parquet; raises ``UserError`` when the file is missing or broken."""
    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run the stage that makes it first") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable Parquet file ({error}); delete it and run again") from None


def sha256_file(path: str | Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sha256_rows(frame: pd.DataFrame) -> str:
    """Hex SHA-256 of a frame's columns and values, independent of the file format and its version."""
    digest = hashlib.sha256(json.dumps(list(frame.columns)).encode())
    for row in frame.itertuples(index=False, name=None):
        digest.update(json.dumps(row, ensure_ascii=False).encode())
    return digest.hexdigest()


def provenance() -> dict:
    """Commit, package versions and hardware of this process, for a record's ``run.json``."""
    versions = {"python": platform.python_version()}
    for package in RECORDED_PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "commit": _commit(),
        "versions": versions,
        "hardware": {"cpu": _cpu_name(), "cores": os.cpu_count()},
    }


def _commit() -> str | None:
    """The commit of the working tree, marked ``-dirty`` when tracked files differ from it."""
    describe = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        return subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
