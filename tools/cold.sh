#!/usr/bin/env bash
# Times a command in a fresh clone with nothing cached: tools/cold.sh make demo
# Packages, Go modules, Go's build cache and the project's cache are in a temporary folder, which is removed at the end.
set -euo pipefail

here=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
folder=$(mktemp -d "${TMPDIR:-/tmp}/s3sink-cold-XXXXXX")
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT

PYTHON=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)') # before HOME changes: it may be a shim of pyenv
mkdir "$folder/home"
export PYTHON HOME="$folder/home" XDG_CACHE_HOME="$folder/cache" PIP_CACHE_DIR="$folder/cache/pip"
unset PYTHONPATH S3SINK_CACHE UV_CACHE_DIR GOPATH GOCACHE GOMODCACHE
git clone -q "$here" "$folder/clone"
cd "$folder/clone"
echo "cold: $(git log -1 --format='%h %s'); load average $(cut -d ' ' -f 1-3 /proc/loadavg)"
time "$@"
