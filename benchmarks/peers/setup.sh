#!/bin/sh
# Make .peers, the environment of the peers. They are measured in it and never installed beside likewise.
# Choose a Python with: PYTHON=/path/to/python benchmarks/peers/setup.sh
set -eu
cd "$(dirname "$0")/../.."
"${PYTHON:-python3}" -m venv --clear .peers

install() {
    .peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@"
}

install --requirement benchmarks/peers/requirements.txt

# facenet-pytorch asks for an older torch and for torchvision; its network needs neither.
install --no-deps facenet-pytorch==2.6.0

# pytorch-fast-transformers is compiled here (minutes), against the torch that is there by now. Where it finds nvcc it
# asks for all of CUDA, which the measurements on a CPU do not need: it is built where nvcc is not on the path.
path=$(pwd)/.peers/bin
IFS=:
for folder in $PATH; do
    if [ ! -x "$folder/nvcc" ]; then path=$path:$folder; fi
done
unset IFS
log=.peers/fast-transformers.log
if ! PATH=$path install --no-build-isolation --no-deps pytorch-fast-transformers==0.4.0 >"$log" 2>&1; then
    echo "pytorch-fast-transformers did not build ($log), and is not measured."
fi
echo "The peers are in .peers; the benchmarks find them there."
