#!/usr/bin/env bash
# Make (or refresh) the virtual environment .venv with the locked requirements and this package.
#   envs/setup.sh          what the workflow needs
#   envs/setup.sh --dev    and what the tests and linters need
# PYTHON names another interpreter than python3. A second call with unchanged locks returns at once.
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
    echo "envs/setup.sh: $*" >&2
    exit 1
}

locks=(envs/requirements-cpu.txt)
case "${1:-}" in
    "") ;;
    --dev) locks+=(envs/requirements-dev.txt) ;;
    *) die "unknown argument '$1'; the only one is --dev" ;;
esac

python=${PYTHON:-python3}
command -v "$python" >/dev/null || die "no '$python' found; install Python 3.11 or newer, or set PYTHON to it"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$("$python" --version) is too old; install Python 3.11 or newer, or set PYTHON to it"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    die "'$python' cannot make virtual environments; install its venv module (Debian, Ubuntu: apt-get install python3-venv)"

# One stamp a lock: what was installed from it, for which checkout and interpreter.
stamp() {
    { cat "$1" pyproject.toml && pwd && "$python" --version; } | sha256sum | cut -d' ' -f1
}

[ -x .venv/bin/python ] || "$python" -m venv .venv
for lock in "${locks[@]}"; do
    installed=.venv/$(basename "$lock" .txt).sha256
    [ "$(cat "$installed" 2>/dev/null)" = "$(stamp "$lock")" ] && continue
    echo "envs/setup.sh: installing $lock into .venv"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$lock" ||
        die "installing $lock failed; pip's message is above. Mend it and run this again: it goes on where it stopped"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
    stamp "$lock" >"$installed"
done
echo "envs/setup.sh: .venv is ready"
