"""Which modules a stage runs: the import graph of the package, read from the source with ``ast``.

The workflow lists them as inputs of the stage's jobs: an edit reruns what depends on it and nothing else.
"""

import ast
from functools import cache
from pathlib import Path

PACKAGE = "specdec"


def stage_modules(stage: str, source: str | Path = "src") -> list[str]:
    """Files that ``python -m specdec <stage>`` runs, ``source``/... paths, sorted.

    The command line's own ``__init__`` only registers stages and is left out: it changes no result.
    """
    done, todo = set(), [Path(source, PACKAGE, "cli", f"{stage}.py")]
    while todo:
        path = todo.pop()
        if path not in done:
            done.add(path)
            todo += imports(path, Path(source))
    return sorted(str(path) for path in done - {Path(source, PACKAGE, "cli", "__init__.py")})


@cache
def imports(path: Path, source: Path) -> frozenset[Path]:
    """Files of the package that the module at ``path`` imports, anywhere in it, their packages included."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = set()
    for name in names:
        parts = name.split(".")
        if parts[0] == PACKAGE:
            for length in range(1, len(parts) + 1):
                base = Path(source, *parts[:length])
                files |= {file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()}
    return frozenset(files)
