# make demo: virtual environment, install, demo, prints where the page is.
# make test: the whole test run.
# make docs: guides and reference as one site, prints where it is.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint docs browser clean

demo: $(VENV)/installed
	$(BIN)/ontogeny demo

test: $(VENV)/installed-dev browser
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . -c constraints.txt
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]" -c constraints.txt
	touch $@

docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]" -c constraints.txt
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build
	@echo "site: docs/_build/index.html"

# Browser tests need Chromium; on Debian and Ubuntu, as root, it is installed here.
browser:
	@if ! command -v chromium >/dev/null; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	  else echo "no chromium: browser tests will be skipped"; fi; \
	fi

clean:
	rm -rf $(VENV) ontogeny-demo docs/_build docs/reference/api
