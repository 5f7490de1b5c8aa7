#!/bin/sh
# Make .peers, the environment of the peers. They are measured in it and never installed beside likewise.
# Choose a Python with: PYTHON=/path/to/python benchmarks/peers/setup.sh
set -eu
cd "$(dirname "$0")/../.."
"${PYTHON:-python3}" -m venv --clear .peers
.peers/bin/python -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt --requirement benchmarks/peers/requirements.txt
echo "The peers are in .peers; benchmarks/attention.py finds them there."
