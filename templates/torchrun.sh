#!/usr/bin/env bash
# One run on several machines, by torchrun: start this on each of them, with its own RANK.
#   NODES=2 RANK=0 FIRST=10.0.0.5 templates/torchrun.sh recipes/rag_r1.yaml --profile paper
#   NODES=2 RANK=0 FIRST=10.0.0.5 RESUME=runs/multi templates/torchrun.sh      # goes on with that run
# The code, the models and --run-dir must be in the same place everywhere.
set -eu
NODES=${NODES:-1}            # machines
RANK=${RANK:-0}              # of this machine, from 0
FIRST=${FIRST:-127.0.0.1}    # address of machine 0
GPUS=${GPUS:-8}              # of each machine
RUN_DIR=${RUN_DIR:-runs/multi}
if [ -n "${RESUME:-}" ]; then
  set -- "$@" --resume "$RESUME"
else
  set -- "$@" --run-dir "$RUN_DIR" trainer.nodes="$NODES" trainer.devices="$GPUS"
fi
exec torchrun --nnodes "$NODES" --nproc-per-node "$GPUS" --node-rank "$RANK" \
  --master-addr "$FIRST" --master-port "${PORT:-29500}" --no-python agentrecipes run "$@"
