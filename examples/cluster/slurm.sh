#!/usr/bin/env bash
# Submit with `sbatch slurm.sh`. JAX reads from srun's environment which process is which.
#SBATCH --job-name=handgrad
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append
# On nodes with cards: --ntasks-per-node and --gpus-per-node both the number of cards, a process for each.
set -euo pipefail
run=runs/houses  # in a folder that all nodes have
if [ -e "$run/checkpoint.safetensors" ]; then
  arguments=(--resume "$run")
else
  arguments=(houses.npy --target prices.npy --batch-size 4096 --out "$run")
fi
# One process that fails ends the others; the job is put back into the queue, and goes on from the checkpoint.
if ! srun --kill-on-bad-exit=1 handgrad train "${arguments[@]}" --cluster; then
  [ "${SLURM_RESTART_COUNT:-0}" -lt 10 ] && scontrol requeue "$SLURM_JOB_ID"
fi
