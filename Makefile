# make demo: virtual environment, install, demo, prints where the page is.
# make test: what a change needs: quick tests of the library.
# make test-all: every test, of the papers, the pages in a browser and the guides too.
# make coverage: which lines of the library its tests run.
# make kernels: numerical tests under other kernels of the processor.
# make docs: guides and reference as one site, prints where it is.
# make environment: what tests and documentation need, installed at once.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# pip would compile every module of every package before anything runs, which is most of its work;
# Python compiles those that are used, when they are.
PIP = --quiet --disable-pip-version-check --no-compile
# Every call builds both distributions anew. The papers come second: pip looks for ontogeny elsewhere
# when it reads that they need it first.
INSTALL = $(BIN)/python -m pip install $(PIP) -c constraints.txt
SOURCES = pyproject.toml papers/pyproject.toml constraints.txt

# Modules that are used are compiled at their first import, not again in every process.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all coverage kernels lint docs environment browser clean

demo: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/ontogeny demo  # its own threads share the work; more would only wait

# Two processes, one thread each.
TESTS = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test: $(VENV)/installed-dev
	$(TESTS) tests -m "not slow and not browser"

test-all: $(VENV)/installed-dev browser
	$(TESTS)

# Which lines the tests of the library run: a report in htmlcov, one process so that it is simple.
coverage: $(VENV)/installed-dev
	$(BIN)/python -m pip install $(PIP) -c constraints.txt coverage
	OMP_NUM_THREADS=1 $(BIN)/python -m coverage run --source src/ontogeny -m pytest tests src -m "not browser"
	$(BIN)/python -m coverage html --skip-covered
	$(BIN)/python -m coverage report --skip-covered --sort cover | tail -n 30

kernels: $(VENV)/installed-dev
	.ci/kernels $(BIN)/python

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/stubs.py --check
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/installed: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e . -e ./papers
	touch $@

$(VENV)/installed-dev: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[dev]" -e ./papers
	touch $(VENV)/installed $@

$(VENV)/installed-docs: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[docs]" -e ./papers
	touch $(VENV)/installed $@

environment:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[dev,docs]" -e ./papers
	touch $(VENV)/installed $(VENV)/installed-docs $(VENV)/installed-dev

docs: $(VENV)/installed-docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W -b html -c docs . docs/_build
	@$(BIN)/python examples/page_age.py
	@echo "site: docs/_build/docs/index.html"

# Browser tests need Chromium; on Debian and Ubuntu, as root, it is installed here.
browser:
	@if ! command -v chromium >/dev/null; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	  else echo "no chromium: browser tests will be skipped"; fi; \
	fi

clean:
	rm -rf $(VENV) ontogeny-demo docs/_build docs/jupyter_execute docs/reference/api
