#!/usr/bin/env bash
# Sets up an environment of its own and runs every check: lint, types, import contracts, tests.
# Needs Python 3.10 or newer; takes its packages from PyPI. Extra arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${DIPPM_TEST_VENV:-.venv}
python3 -m venv "$venv"
bin="$venv/bin"
# torch first and pinned: an open range would bring several gigabytes of CUDA libraries.
"$bin/python" -m pip install --quiet torch==2.13.0
"$bin/python" -m pip install --quiet --editable '.[dev]'
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy"
"$bin/lint-imports"
exec "$bin/python" -m pytest "$@"
