# make run     set up, run the shipped suite `quick`, write its report
# make specs   run the shipped specifications: a program, and one model as ONNX, torch.export and OpenVINO
# make unit    unit tests that need no torch and start no process: under a minute
# make test    what one needs to trust a change: units, contracts, flows of every command, faults, browser; up to 12 minutes
# make affected  of these, what a change can reach, nearest first, 3 minutes at most: SINCE=HEAD~1 for the last commit
# make test-long  kills, lies, fuzz, every runtime, many examples for property tests; with the unit tests, for the coverage floor
# make without-compat  the tests that need no other tool's formats, with benchwright/compat and its entry points taken away
# make durations  make test, with the CPU seconds of folders and of the dearest tests
# make lint    formatting, lint, types, layers, dead code
# make check   lint, then the tests
# make lies    programs that lie or misbehave, with 1000 children instead of 50
# make fuzz    damaged files through every command that reads them: MUTANTS=5000, starting at FIRST=0
# make bench   the side-by-side measurements of performance/, with quick settings
# make kills   kill parts of benchwright at random, KILLS=500 times; nothing may be lost
# make locked  write requirements.ci.txt again, after a change of dependencies; needs the network
# make docs    build the documentation into site/
# make recording  record the runs of the README (docs/images/recording.svg) and of the tutorial again, on a quiet machine
# make wheels  build both wheels into dist/
# make format  format the code
# make clean   remove everything these commands made

PYTHON ?= python3
BIN := .venv/bin
DEV := .venv/.dev-ready
DOCS := .venv/.docs-ready
KILLS ?= 500
MUTANTS ?= 5000
FIRST ?= 0
SEED ?= 1
SINCE ?= HEAD
# Containers often set PYTHONDONTWRITEBYTECODE: each of thousands of processes would compile benchwright for itself.
# Two workers more than cores: tests wait a third of their time, for a scheduler, a server, a device or a program's deadline.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 2)
PYTEST := PYTHONDONTWRITEBYTECODE= PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
PIP_INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt
# Set in CI: only files whose hashes are in requirements.ci.txt are installed. pip then takes neither a local build of torch, which
# has no public hash, nor our own folder: that comes last, without looking for anything. So it is not what contributors get.
LOCKED ?=
# Set in CI, where `make test` has measured coverage and tried property tests already: `make test-long` adds the rest.
COVERED ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export NO_MKDOCS_2_WARNING := 1

.PHONY: run specs unit test test-long affected without-compat durations check lint lies fuzz bench kills locked docs recording wheels format clean

run: $(DEV)
	VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/benchwright run quick --use-current-env --base .bench
	$(BIN)/benchwright report last --base .bench --format html -o .bench/report.html

specs: $(DEV)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/benchwright run examples --base .bench

UNIT := analysis cli compat core doctor kinds plan record report runs store

unit: $(DEV)
	$(PYTEST) -q -m "not long" --hypothesis-profile quick $(UNIT:%=tests/unit/%) tests/unit/benchprobe/stream/test_columns.py tests/unit/benchprobe/rules/test_stop_rules.py

test: $(DEV)
	$(PYTEST) -m "not long" --hypothesis-profile repeatable $(ARGS)

test-long: $(DEV)
	$(PYTEST) -m "$(if $(COVERED),long,long or for_coverage)" --hypothesis-profile many --cov $(if $(COVERED),--cov-append) --cov-report=term $(ARGS)

affected: $(DEV)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/affected.py --since $(SINCE) $(ARGS)

without-compat: $(DEV)
	$(BIN)/python tests/support/without_compat.py .venv/without-compat
	PYTHONPATH="$(CURDIR)/.venv/without-compat" $(PYTEST) -m "not long" --hypothesis-profile repeatable $(ARGS)

durations: $(DEV)
	$(PYTEST) -q -m "not long" --hypothesis-profile repeatable -p durations $(ARGS)

check: lint test

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/dead_code.py

lies: $(DEV)
	LIES_CHILDREN=1000 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 2 -rxX tests/faults/test_lies.py

fuzz: $(DEV)
	MUTANTS=$(MUTANTS) FIRST=$(FIRST) PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n auto tests/faults/test_mutated_files.py

# Missed bars are listed at the end; expect some on a busy machine.
bench: $(DEV)
	@missed=; for script in performance/[!_]*.py; do \
		echo "== $$script"; $(BIN)/python $$script --quick || missed="$$missed $$script"; \
	done; [ -z "$$missed" ] || { echo "bars missed in:$$missed"; exit 1; }

kills: $(DEV)
	$(BIN)/python tests/faults/kill_campaign.py --kills $(KILLS) --seed $(SEED)

locked: $(DEV)
	@sed -n '/^#/p' requirements.ci.txt > requirements.ci.txt.part
	$(BIN)/uv pip compile -q pyproject.toml --extra dev --extra torch --extra docs -c constraints.txt --universal \
		--python-version 3.11.5 --generate-hashes --no-header --no-annotate >> requirements.ci.txt.part
	@mv requirements.ci.txt.part requirements.ci.txt

docs: $(DOCS)
	$(BIN)/python docs/generate_cli.py docs/reference/cli.md
	$(BIN)/python docs/generate_keywords.py
	$(BIN)/python docs/generate_schema.py
	$(BIN)/mkdocs build --strict --clean --site-dir site

recording: $(DEV)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/record_terminal.py docs/images/recording.svg
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/record_pages.py docs/tutorial.md

wheels: $(DEV)
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	$(BIN)/python -m build --wheel --no-isolation --outdir dist packaging/benchprobe

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv dist site htmlcov .coverage .coverage.* .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# torch first, alone: it is the one large download, and the rest must match it.
$(DEV): pyproject.toml constraints.txt $(if $(LOCKED),requirements.ci.txt)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "benchwright needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
		     "choose another: make PYTHON=python3.12" >&2; exit 2; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "setting up .venv; the first time takes some minutes, since torch is large"; \
		$(PYTHON) -m venv --clear .venv || { \
			echo "could not create .venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }; }
	$(if $(LOCKED),\
		$(BIN)/python -m pip install --quiet --require-hashes --no-deps --only-binary :all: -r requirements.ci.txt && \
		$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --no-index -e .,\
		$(PIP_INSTALL) torch && $(PIP_INSTALL) -e '.[dev,torch]')
	@touch $@

$(DOCS): $(DEV)
	$(if $(LOCKED),,$(PIP_INSTALL) -e '.[docs]')
	@touch $@
