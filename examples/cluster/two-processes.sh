#!/usr/bin/env bash
# Two processes on one machine train one network; give the folder of the run, and options of `handgrad train`.
# Begins a training, or goes on with the one in the folder: run it again after a crash.
set -euo pipefail
run=$1
shift
if [ -e "$run/checkpoint.safetensors" ]; then
  arguments=(--resume "$run")
else
  arguments=(--out "$run" "$@")
fi
export HANDGRAD_COORDINATOR=localhost:${PORT:-55527} HANDGRAD_PROCESSES=2
HANDGRAD_PROCESS=1 handgrad train "${arguments[@]}" --cluster &
second=$!
HANDGRAD_PROCESS=0 handgrad train "${arguments[@]}" --cluster
wait "$second"
