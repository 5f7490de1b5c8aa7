# The README's two commands are `make tour` and `make test`. Both make the environment first, if it is missing or old.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
KERNEL := likewise/attention/native/kernel.so

# Any Python from 3.11 on; the first that answers. Choose another with: make test PYTHON=/path/to/python
PYTHON ?= $(shell for python in python3.11 python3 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)

# Sources and rewritten tests are compiled once, not in every run and every process, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup tour quick test test-full check docs notebooks bench studies

help:
	@echo "make tour    run every method on real data and write likewise-report.html"
	@echo "make quick   check, then the tests that take at most a second each (three minutes)"
	@echo "make test    check, then all tests but the heaviest; a change is merged when it is green (eight minutes)"
	@echo "make test-full  the heaviest tests (browser, sanitizers, engines, models), and more examples of every property"
	@echo "make check   lint, formatting and types"
	@echo "make docs    build the documentation site, build/site"
	@echo "make notebooks  execute the notebooks and keep their outputs (minutes)"
	@echo "make bench   measure errors, and speed against the peers (half an hour)"
	@echo "make studies train networks and ask them: softmax replaced, faces, difficulty, early exit (hours)"
	@echo "make setup   only make the environment, $(VENV)"

setup: $(READY) $(KERNEL)

tour: $(READY) $(KERNEL)
	@$(BIN)/likewise tour

# Without shape checks, with few examples of each property; and names what should be marked slow.
quick: check
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal --quick -m "not slow and not full" --durations=10 --durations-min=1

test: check
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

# The tests marked full, and every property with more examples. Engines that a gallery can be kept in and two pretrained
# models are installed when this is first asked for; where that fails their tests are skipped and say so.
test-full: $(READY) $(KERNEL)
	@$(BIN)/python tools/full_tests.py
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal --full -m "full or hypothesis"

check: $(READY) $(KERNEL)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "Formatting differs: run $(BIN)/ruff format"; exit 1; }
	@$(BIN)/ty check --quiet --output-format concise

# What builds the site is installed when it is first asked for; nothing else needs it.
docs: $(READY)
	@$(BIN)/python -c 'import zensical, mkdocstrings_handlers.python' 2>/dev/null || $(BIN)/python -m pip install -qq \
		--disable-pip-version-check --no-build-isolation --constraint constraints.txt --editable '.[docs]'
	@$(BIN)/python tools/site.py gather
	@$(BIN)/zensical build --strict --config-file zensical.toml
	@$(BIN)/python tools/site.py finish

# What executes them is installed when it is first asked for.
notebooks: $(READY) $(KERNEL)
	@$(BIN)/python -c 'import jupytext, nbclient, ipykernel' 2>/dev/null || $(BIN)/python -m pip install -qq \
		--disable-pip-version-check --no-build-isolation --constraint constraints.txt --editable '.[notebooks]'
	@$(BIN)/python tools/notebooks.py

bench: $(READY) $(KERNEL)
	@$(BIN)/python -m benchmarks.attention_error
	@status=0; $(BIN)/python -m benchmarks.attention_speed || status=$$?; \
	$(BIN)/python -m benchmarks.mining || status=$$?; $(BIN)/python -m benchmarks.embedding || status=$$?; \
	$(BIN)/python -m benchmarks.exits || status=$$?; $(BIN)/python -m benchmarks.gallery || status=$$?; \
	$(BIN)/python -m benchmarks.render; exit $$status

studies: $(READY) notebooks
	@$(BIN)/python studies/real_attention.py
	@$(BIN)/python -m studies.lfw
	@$(BIN)/python -m studies.lfw_questions
	@$(BIN)/python -m studies.early_exit
	@$(BIN)/python -m studies.depth
	@$(BIN)/python -m studies.reviews
	@test -z "$$LIKEWISE_DESCRIPTORS" || $(BIN)/python -m studies.gallery "$$LIKEWISE_DESCRIPTORS"

# Made anew each time, so that it holds what the two files say and nothing else. uv installs several times faster
# than pip and compiles bytecode in parallel, but does not read pip's settings: it is told where local wheels are (else
# it would fetch gigabytes of CUDA that a local CPU build of torch spares), and where it fails pip has the last word.
# The build runs without isolation because an isolated one would fetch a hatchling that no constraint holds.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "likewise needs Python 3.11 or later; got '$(PYTHON)'. Try: make setup PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making $(VENV) (once; a minute or two) ..."
	@"$(PYTHON)" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt uv hatchling
	@export UV_COMPILE_BYTECODE=1 VIRTUAL_ENV=$(VENV); \
	if [ -n "$$PIP_FIND_LINKS" ]; then export UV_FIND_LINKS="$$(echo $$PIP_FIND_LINKS | tr ' ' ',')"; fi; \
	if [ -n "$$PIP_INDEX_URL" ]; then export UV_DEFAULT_INDEX="$$PIP_INDEX_URL"; fi; \
	$(BIN)/uv pip install -qq --no-build-isolation --constraint constraints.txt --editable '.[all,dev]' || { \
		echo "uv could not install; trying pip ..."; \
		$(BIN)/python -m pip install -qq --disable-pip-version-check --no-build-isolation \
			--constraint constraints.txt --editable '.[all,dev]'; }
	@touch $(READY)

# The install above has compiled it; here it follows its source. Without a compiler everything works, slower.
$(KERNEL): likewise/attention/native/kernel.cpp hatch_build.py | $(READY)
	@$(BIN)/python hatch_build.py || true
