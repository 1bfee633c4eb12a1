# make run     set up, then run the shipped suite `quick` and leave its report
# make test    every test, in parallel, with the coverage floor
# make check   formatting, lint, types, direction of dependencies, then the tests
# make bench   the side-by-side measurements of performance/, with quick settings
# make docs    the documentation, as pages in site/
# make wheels  both wheels, in dist/
# make format  write the formatting
# make clean   remove what these made

PYTHON ?= python3
BIN := .venv/bin
DEV := .venv/.dev-ready
DOCS := .venv/.docs-ready
PIP_INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export NO_MKDOCS_2_WARNING := 1

.PHONY: run test check lint bench docs wheels format clean

run: $(DEV)
	VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/benchwright prepare quick --use-current-env --base .bench
	VIRTUAL_ENV="$(CURDIR)/.venv" $(BIN)/benchwright run quick --use-current-env --base .bench
	$(BIN)/benchwright report last --base .bench --format html -o .bench/report.html

test: $(DEV)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n auto --dist loadgroup --cov --cov-report=

check: lint test

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A bar that is missed is said at the end: on a busy machine some will be.
bench: $(DEV)
	@missed=; for script in performance/[!_]*.py; do \
		echo "== $$script"; $(BIN)/python $$script --quick || missed="$$missed $$script"; \
	done; [ -z "$$missed" ] || { echo "a bar was missed in:$$missed"; exit 1; }

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
