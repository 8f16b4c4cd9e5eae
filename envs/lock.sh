#!/usr/bin/env bash
# Write envs/requirements-{cpu,dev}.txt anew from pyproject.toml. Pins already there are kept; to raise one, delete
# its line first. Run it in the environment that envs/setup.sh --dev made, then commit both files.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
    .venv/bin/pip-compile --quiet --strip-extras --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options "$@"
}

header() {
    printf '# %s\n' "$1" \
        "Written by envs/lock.sh, which says how to change it. No hashes: a CPU and a CUDA build of the same torch differ."
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in cpu dev; do
    sed '/^#/d' "envs/requirements-$name.txt" >"$work/$name.txt" 2>/dev/null || true
done

compile pyproject.toml --output-file "$work/cpu.txt"
compile pyproject.toml --extra dev --extra slurm --constraint "$work/cpu.txt" --output-file "$work/dev.txt"

# A local label such as +cpu names one index's build; the release alone is what is pinned.
sed -i -e 's/+cpu$//' -e '/^#/d' -e '/^$/d' "$work/cpu.txt" "$work/dev.txt"
{
    header "Everything that the workflow runs with, pinned."
    cat "$work/cpu.txt"
} >envs/requirements-cpu.txt
{
    header "What the tests and linters need on top of requirements-cpu.txt, pinned."
    grep -vxFf "$work/cpu.txt" "$work/dev.txt"
} >envs/requirements-dev.txt
