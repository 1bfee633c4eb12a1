# make run     set up, then run the shipped suite `quick` and leave its report
# make unit    unit tests that need no torch and start no process: under a minute
# make test    every test, in parallel, with the coverage floor; up to 5 that fail are tried once more, alone
# make check   formatting, lint, types, direction of dependencies, then the tests
# make lies    programs that lie or misbehave, each with what has to be said about it; a thousand children where the tests have a hundred
# make fuzz    damaged files through every command that reads them: MUTANTS=5000 of them, from FIRST=0 on
# make bench   the side-by-side measurements of performance/, with quick settings
# make kills   parts of benchwright are killed at random moments, 500 times or KILLS=n, and nothing may be lost
# make docs    the documentation, as pages in site/
# make wheels  both wheels, in dist/
# make format  write the formatting
# make clean   remove what these made

PYTHON ?= python3
BIN := .venv/bin
DEV := .venv/.dev-ready
DOCS := .venv/.docs-ready
KILLS ?= 500
SEED ?= 1
PIP_INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export NO_MKDOCS_2_WARNING := 1

.PHONY: run unit test check lint lies fuzz bench kills docs wheels format clean

run: $(DEV)
	VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/benchwright prepare quick --use-current-env --base .bench
	VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/benchwright run quick --use-current-env --base .bench
	$(BIN)/benchwright report last --base .bench --format html -o .bench/report.html

UNIT := analysis cli core doctor exchange kinds plan record report runs store

unit: $(DEV)
	$(BIN)/python -m pytest -q -n auto -m "not slow" $(UNIT:%=tests/unit/%) tests/unit/benchprobe/stream/test_columns.py tests/unit/benchprobe/rules/test_stop_rules.py

test: $(DEV)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/run_tests.py

check: lint test

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lies: $(DEV)
	LIES_CHILDREN=1000 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 2 -rxX tests/faults/test_lies.py
MUTANTS ?= 5000
FIRST ?= 0

fuzz: $(DEV)
	MUTANTS=$(MUTANTS) FIRST=$(FIRST) PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q -n auto tests/faults/test_mutated_files.py

# A bar that is missed is said at the end: on a busy machine some will be.
bench: $(DEV)
	@missed=; for script in performance/[!_]*.py; do \
		echo "== $$script"; $(BIN)/python $$script --quick || missed="$$missed $$script"; \
	done; [ -z "$$missed" ] || { echo "a bar was missed in:$$missed"; exit 1; }

kills: $(DEV)
	$(BIN)/python tests/faults/kill_campaign.py --kills $(KILLS) --seed $(SEED)

docs: $(DOCS)
	$(BIN)/python docs/generate_cli.py docs/reference/cli.md
	$(BIN)/python docs/generate_schema.py
	$(BIN)/mkdocs build --quiet --strict --clean --site-dir site

wheels: $(DEV)
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .
	$(BIN)/python -m build --wheel --no-isolation --outdir dist packaging/benchprobe

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv dist site htmlcov .coverage .coverage.* .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# torch goes first, alone: it is the one large download, and the rest then only has to agree with it.
$(DEV): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "benchwright needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
		     "say which one to use: make PYTHON=python3.12" >&2; exit 2; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "setting up .venv; torch is large, so the first time takes some minutes"; \
		$(PYTHON) -m venv --clear .venv || { \
			echo "could not make .venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }; }
	$(PIP_INSTALL) torch
	$(PIP_INSTALL) -e '.[dev,torch]'
	@touch $@

$(DOCS): $(DEV)
	$(PIP_INSTALL) -e '.[docs]'
	@touch $@
