#!/usr/bin/env bash
# Makes the environment of engines.py, and does nothing when it is up to date:
#     build.sh light|heavy [FOLDER]
# light: the engines without a model or a server; heavy: all of them (PostgreSQL's server is Debian's package postgresql).
# FOLDER is .venv beside this script by default; PYTHON names the interpreter, python3 by default.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kind=${1:-}
venv=${2:-$here/.venv}
python=${PYTHON:-python3}
light=("$here/requirements-light.txt")
heavy=("${light[@]}" "$here/requirements-heavy.txt")

stamp() { # stamp LIST...: what an environment of these lists is made from
    "$python" -c 'import sys; print(sys.version)'
    cat "$@"
}

is_of() { # is_of LIST...: whether the environment was made from these lists, to the end
    [ -x "$venv/bin/python" ] && stamp "$@" | cmp -s - "$venv/stamp"
}

case "$kind" in
    light) lists=("${light[@]}") ;;
    heavy) lists=("${heavy[@]}") ;;
    *) echo "usage: build.sh light|heavy [FOLDER]" >&2 && exit 2 ;;
esac
if is_of "${heavy[@]}" || is_of "${lists[@]}"; then
    echo "up to date: $kind"
    exit 0
fi
if [ -e "$venv" ] && [ ! -e "$venv/pyvenv.cfg" ]; then
    echo "not an environment, left alone: $venv" >&2
    exit 2
fi
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${lists[@]/#/--requirement=}"
stamp "${lists[@]}" >"$venv/stamp"
echo "built: $kind"
