# Every target works as the first command on a bare checkout: Python 3.11 or later with venv and pip, and make.
# stdout belongs to the program that a target starts; what make and pip have to say goes to stderr.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -P
ARGS ?=
# Two workers keep a small machine usable; TEST_ARGS="-x tests/test_house.py" runs what you name, in one process.
TEST_ARGS ?= -q -n auto --maxprocesses 4

# The stamp holds the folder it was made in: an environment that was copied or moved along points elsewhere.
STAMP := $(VENV)/.installed
REQUIREMENTS := $(wildcard requirements/*.txt pyproject.toml hookspecs/pyproject.toml plugins/*/pyproject.toml)
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

unexport PYTHONPATH PYTHONHOME

.PHONY: help dev run demo demo-svg test check format bench bench-peer docs isolated laws faults gateway-faults soak soak-platforms soak-kills clean
.DEFAULT_GOAL := help

help:
	@echo 'make run [ARGS=...]   start hermes; stdin reaches it:  echo hello | make run'
	@echo 'make demo             a story on this machine: three fake platforms, a kill -9, a checked summary'
	@echo 'make demo-svg         the same, and its picture in docs/demo.svg'
	@echo 'make test             all tests (TEST_ARGS=... replaces the arguments of pytest)'
	@echo 'make check            lint, format, types, import rules, generated docs'
	@echo 'make format           let ruff repair what it can'
	@echo 'make bench            speed against raw SQLite; bench-peer adds the original'
	@echo 'make docs             write docs/hooks.md, docs/from-hermes.md and hookspecs/api/v1.txt'
	@echo 'make isolated         test each distribution alone, from wheels (ARGS="--only NAME")'
	@echo 'make laws             every law of Hypothesis with 1000 examples (LAWS=5000 ARGS="tests/context")'
	@echo 'make faults           kill processes 1000 times and prove that nothing is lost (ARGS="--mutant no-fence")'
	@echo 'make gateway-faults   kill gateways under load (ARGS="--kills 200 --idempotent", ARGS="--platform weixin")'
	@echo 'make soak-platforms   ten minutes of three platforms, 50 people and kills (ARGS="--seconds 60")'
	@echo 'make soak-kills       kill processes 20000 times; make soak does both'
	@echo 'make dev              only set up $(VENV)'
	@echo 'make clean            remove $(VENV), caches and build output'

dev: $(STAMP)
	@:

$(STAMP): $(REQUIREMENTS)
	@exec 1>&2 </dev/null; set -e; \
	$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(f"Python 3.11 or later is needed, $(PYTHON) is {v}: make PYTHON=/path/to/python" if sys.version_info < (3, 11) else 0)'; \
	echo 'setting up $(VENV) (once, and again when requirements change)'; \
	rm -f $(STAMP); \
	if [ -d $(VENV) ] && ! grep -qsF '$(CURDIR)/$(VENV)' $(BIN)/activate; then rm -rf $(VENV); fi; \
	$(PYTHON) -m venv $(VENV); \
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c requirements/constraints.txt -r requirements/dev.txt; \
	printf '%s\n' '$(CURDIR)' > $(STAMP)

run: $(STAMP)
	@exec $(BIN)/hermes $(ARGS)

demo: $(STAMP)
	@exec $(BIN)/hermes demo $(ARGS)

demo-svg: $(STAMP)
	@exec $(BIN)/hermes demo --svg docs/demo.svg $(ARGS)

test: $(STAMP)
	@exec $(RUN) -m pytest $(TEST_ARGS)

check: $(STAMP)
	@set -e; \
	$(BIN)/ruff check .; \
	$(BIN)/ruff format --check .; \
	$(RUN) -m mypy; \
	$(RUN) -m mypy tools; \
	$(BIN)/lint-imports; \
	$(RUN) tools/hookdocs.py --check; \
	$(RUN) tools/seednames.py --check

format: $(STAMP)
	@$(BIN)/ruff check --fix-only .; $(BIN)/ruff format .

bench: $(STAMP)
	@exec $(BIN)/python -m benchmarks $(ARGS)

bench-peer: $(STAMP)
	@exec $(BIN)/python -m benchmarks --peer $(ARGS)

docs: $(STAMP)
	@$(RUN) tools/hookdocs.py && $(RUN) tools/seednames.py

isolated: $(STAMP)
	@exec $(RUN) tools/isolated.py $(ARGS)

# Behind the results stands what a law has counted.
LAWS ?= 1000
laws: $(STAMP)
	@HERMES_LAWS=$(LAWS) PYTHONPATH=tests/laws exec $(RUN) -m pytest -p long_laws -q -n auto --maxprocesses 4 $(ARGS)

# The last line says what was seen: N kills: 0 lost, 0 doubled, 0 interleaved.
faults: $(STAMP)
	@PYTHONPATH=tests/faults exec $(RUN) -m fault_harness --kills 1000 $(ARGS)

# Gateways as processes over a small platform, or over WeChat's fake server (--platform weixin, --gentle, --mutant NAME):
# every message answered once, or marked, in order, each in its own chat.
gateway-faults: $(STAMP)
	@PYTHONPATH=tests/toy_platform exec $(RUN) -m toy_faults $(ARGS)

# The last line of each says what was seen: N messages, N kills: 0 lost, 0 doubled, ...
soak:
	@$(MAKE) --no-print-directory soak-platforms ARGS=
	@$(MAKE) --no-print-directory soak-kills ARGS=

soak-platforms: $(STAMP)
	@PYTHONPATH=tests/soak exec $(RUN) -m soak_harness $(ARGS)

soak-kills: $(STAMP)
	@PYTHONPATH=tests/faults exec $(RUN) -m fault_harness --kills 20000 $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist hookspecs/dist plugins/*/dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
