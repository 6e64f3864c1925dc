#!/usr/bin/env bash
# A vLLM server for agentrecipes, one for each machine that samples:
#   MODEL=/data/models/Qwen/Qwen2.5-7B-Instruct PORT=8000 templates/serve.sh
# and in the recipe:
#   rollout: {engine: {name: vllm_server, urls: [http://THIS_MACHINE:8000], folder: /mnt/weights, context: 8192}}
# Its routes for weights let a caller run code in it: listen only where nobody else can reach it.
set -eu
: "${MODEL:?the folder of the model}"
HOST=${HOST:-127.0.0.1}
PORT=${PORT:-8000}
GPUS=${GPUS:-1}              # that share the model
CONTEXT=${CONTEXT:-8192}     # most tokens of a prompt and its answer
DTYPE=${DTYPE:-bfloat16}
export VLLM_SERVER_DEV_MODE=1 VLLM_USE_V2_MODEL_RUNNER=0 VLLM_NO_USAGE_STATS=1
exec python -m vllm.entrypoints.openai.api_server --enable-scale-out --host "$HOST" --port "$PORT" \
  --model "$MODEL" --dtype "$DTYPE" --max-model-len "$CONTEXT" --tensor-parallel-size "$GPUS" \
  --generation-config vllm --logprobs-mode processed_logits \
  --logits-processors agentrecipes.engines.vllm_runtime.draw:CounterDraw \
  --worker-extension-cls agentrecipes.engines.vllm_runtime.worker.Weights "$@"
