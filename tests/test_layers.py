"""Imports point down the layers, transformers stays in models, and analysis and report stay free of torch."""

import ast
from pathlib import Path

import pytest

from specdec.modules import imports, stage_modules

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "specdec"
FILES = sorted(PACKAGE.rglob("*.py"))
LAYERS = {"cli": 5, "report": 4, "analysis": 3, "decoding": 2, "models": 1, "data": 1}
ENTRY = {"__init__", "__main__"}


def part(path: Path) -> str:
    """The subpackage a file belongs to, or the name of a module at the top (layer 0)."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def outside(path: Path) -> set[str]:
    """Top-level names of the packages that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    return found


def reached(path: Path) -> set[Path]:
    """A file and all of the package that it imports, directly or not."""
    found, todo = set(), [path]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += imports(here, SOURCE)
    return found


@pytest.mark.parametrize("path", [file for file in FILES if part(file) not in ENTRY], ids=named)
def test_imports_point_down(path):
    ours = part(path)
    for target in imports(path, SOURCE):
        theirs = part(target)
        down = LAYERS.get(theirs, 0) < LAYERS.get(ours, 0)
        both_lowest = LAYERS.get(ours, 0) == 0 == LAYERS.get(theirs, 0)
        allowed = theirs in ENTRY or theirs == ours or down or both_lowest
        assert allowed, f"{named(path)} imports {named(target)}"


@pytest.mark.parametrize("path", [file for file in FILES if part(file) != "models"], ids=named)
def test_only_models_knows_transformers(path):
    assert "transformers" not in outside(path)


TORCH_FREE = [file for file in FILES if part(file) in ("analysis", "report") and file.stem != "overlap"]


@pytest.mark.parametrize("path", TORCH_FREE, ids=named)
def test_analysis_and_report_are_free_of_torch(path):
    for file in reached(path):
        assert "torch" not in outside(file), f"{named(path)} reaches torch through {named(file)}"


def test_imports_are_absolute():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), (
                f"{named(path)}: {ast.unparse(node)}"
            )


def test_a_stage_lists_what_it_imports_and_no_more():
    modules = {Path(file).relative_to(PACKAGE).as_posix() for file in stage_modules("tokenizer", SOURCE)}
    assert {"cli/tokenizer.py", "models/tokenizer.py", "errors.py", "files.py"} <= modules
    assert not {"cli/__init__.py", "cli/train.py", "acceptance.py"} & modules
