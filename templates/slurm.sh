#!/usr/bin/env bash
# One run on several machines, by SLURM: edit the lines that begin with #SBATCH, then
#   sbatch templates/slurm.sh recipes/rag_r1.yaml --profile paper
#   RESUME=runs/17 sbatch templates/slurm.sh      # goes on with the run of job 17, on as many machines
#SBATCH --job-name=agentrecipes
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --time=24:00:00
#SBATCH --signal=SIGTERM@300
set -eu
export AGENTRECIPES_MODELS=${AGENTRECIPES_MODELS:-$HOME/models}
export HF_HUB_OFFLINE=1
# SIGTERM comes five minutes before the end: the run saves a checkpoint and can be resumed.
[ -z "${RESUME:-}" ] || exec srun agentrecipes run "$@" --resume "$RESUME"
exec srun agentrecipes run "$@" --run-dir "runs/$SLURM_JOB_ID" \
  trainer.nodes="$SLURM_JOB_NUM_NODES" trainer.devices="$SLURM_NTASKS_PER_NODE"
