"""A clean copy of this checkout, in which Snakemake is run as a user would."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The plan, its errors and the smoke run need the demo's tasks, which the data stage brings.
if not (ROOT / "config/tasks/ende.yaml").is_file():
    collect_ignore = ["test_config_errors.py", "test_dry_run.py", "test_smoke.py"]
SMOKE = ("--configfile", "config/studies/smoke.yaml")


@dataclass(frozen=True)
class Checkout:
    """A copy of the files that git knows of, or would take. lock: what its timed jobs hold."""

    root: Path
    lock: Path

    def snakemake(self, *arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess:
        """Run Snakemake there, with no environment activated: its jobs must find their Python themselves."""
        path = ":".join(p for p in os.environ["PATH"].split(":") if p != str(Path(sys.executable).parent))
        environment = {**os.environ, "PATH": path, "SPECDEC_LOCK": str(self.lock)}
        environment.pop("PYTHONPATH", None)
        command = [sys.executable, "-m", "snakemake", *arguments]
        return subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=timeout_s
        )

    def plan(self, *arguments: str) -> dict[str, int]:
        """Jobs a rule that a dry run would start; empty when there is nothing to do."""
        done = self.snakemake("--dry-run", "--quiet", "rules", "--cores", "2", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        stats = re.findall(r"^(\w+) +(\d+)$", done.stdout + done.stderr, re.MULTILINE)
        return {rule: int(count) for rule, count in stats if rule not in ("total", "all")}


def copy_checkout(to: Path) -> Checkout:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        source, copy = ROOT / name, to / "copy" / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    return Checkout(to / "copy", to / "lock")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory) -> Checkout:
    """A copy in which nothing has run; tests leave it so."""
    return copy_checkout(tmp_path_factory.mktemp("checkout"))
