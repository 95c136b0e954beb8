# Every target sets itself up: nothing is assumed but Python (>= 3.11, with venv) and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
JOBS ?= 5

.PHONY: help demo paper pages pictures site test test-all test-long test-sb3 lint check bench clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	@echo "setting up .venv (about a minute, once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true  # pip would use one core
	@touch $@

demo: $(READY)  ## see it work: a few minutes on two cores
	$(BIN)/primax worlds
	@rm -rf demo && mkdir -p demo
	$(BIN)/primax train prime maze --preset quick --seeds 2 --out demo/maze
	$(BIN)/primax watch demo/maze --gif demo/maze.gif
	$(BIN)/primax explain demo/maze --png demo/maze.png
	$(BIN)/primax train task butterflies --preset quick --seeds 2 --out demo/butterflies
	$(BIN)/primax watch demo/butterflies --gif demo/butterflies.gif
	$(BIN)/primax evaluate demo/butterflies
	$(BIN)/primax train rnd two_wings --preset quick --seeds 2 --out demo/rnd
	$(BIN)/primax watch demo/rnd --seed 1 --gif demo/rnd.gif
	$(BIN)/primax train prime two_wings --preset quick --seeds 2 --out demo/prime
	$(BIN)/primax watch demo/prime --seed 1 --gif demo/prime.gif
	$(BIN)/primax report demo/maze demo/butterflies demo/rnd demo/prime --out demo/report.html
	@echo "look at the agents in demo/maze.gif and demo/butterflies.gif, at what PRIME pays for in demo/maze.png, and at the tables in demo/maze and demo/butterflies"
	@echo "one wing of TwoWings flickers for ever: RND is held by it (demo/rnd.gif), PRIME leaves it, on most seeds (demo/prime.gif)"
	@echo "open demo/report.html in a browser: curves, seeds, maps, replays and settings of these runs on one page"
	@echo "run $(BIN)/primax to see what else there is"

paper: $(READY)  ## the paper on your GPU, into paper/: 64 runs, JOBS=5 at a time, pages, report
	@command -v nvidia-smi >/dev/null || echo "no GPU here: on a CPU this takes weeks"
	@! command -v nvidia-smi >/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cuda]'
	$(BIN)/primax reproduce --scale paper --write-plan --out paper/whole
	$(BIN)/primax sweep paper/whole/runs --jobs $(JOBS)
	$(BIN)/primax pack paper/whole --out paper/runs
	$(BIN)/primax reproduce --scale paper --no-run --out paper
	$(BIN)/primax report paper --out paper/report.html

pages: $(READY)  ## every table, figure and page anew from results/paper
	$(BIN)/primax reproduce --scale paper --no-run --out results/paper --into README.md --into docs/reproduction.md
	$(BIN)/primax report results/paper --out docs/report_paper.html

pictures: $(READY)  ## the README's two episodes anew from results/paper
	$(BIN)/primax watch results/paper/runs/prime_butterflies --seed 2 --gif docs/pictures/butterflies.gif
	$(BIN)/primax watch results/paper/runs/prime_maze --seed 14 --episode 409 --gif docs/pictures/maze.gif

# Warnings are errors: a page that no list names, a link or an anchor that leads nowhere.
site: $(READY)  ## these pages and a reference of the code as a site, into site/, with every link checked
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@rm -rf site build/doctrees
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d build/doctrees . site
	$(BIN)/python docs/site/check.py site
	@echo "open site/index.html in a browser"

test: $(READY)  ## the quick tests, before every commit
	$(BIN)/python -m pytest

test-all: $(READY)  ## every test, the slow ones too
	$(BIN)/python -m pytest -m ""

test-long: $(READY)  ## those that `make check` leaves out: they are long, and others show nearly the same
	$(BIN)/python -m pytest -m long

# An environment of its own: torch is large, and the other tests must pass without it.
.venv-sb3/ready: pyproject.toml constraints.txt
	@echo "setting up .venv-sb3 with torch and Stable-Baselines3 (about a minute, once)"
	@$(PYTHON) -m venv .venv-sb3
	@.venv-sb3/bin/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev,sb3,examples]' sb3-contrib
	@touch $@

test-sb3: .venv-sb3/ready  ## the tests of the Stable-Baselines3 adapter, slow ones too
	.venv-sb3/bin/python -m pytest -m "" tests/test_sb3.py tests/test_kept.py

# ty misreads the stubs of the numpy that constraints.txt has for Python 3.12 and later.
lint: $(READY)  ## format, lint, types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; \
	then echo "$(BIN)/ty check src"; $(BIN)/ty check src; \
	else echo "types were not checked: that takes Python 3.11"; fi

check: lint  ## all that a change must pass: format, lint, types, and every test that is not long
	$(BIN)/python -m pytest -m "not long"

bench: $(READY)  ## speed of training beside PyTorch, and of the worlds beside gymnax and numpy
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/table.py
	$(BIN)/python benchmarks/worlds.py

clean:  ## remove what the targets made
	rm -rf .venv .venv-sb3 demo site build/doctrees .pytest_cache .ruff_cache .hypothesis
