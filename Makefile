# make run: set up, then the main job. make test: set up, then lint, types, the check of benchmark numbers and tests.
# make test-slow: set up, then the tests that are too long for every change: whole figures of a paper, a hundred kills, every instruction set,
# a wheel, the long pages of docs.
# make mutants: set up, then every small wrong change of tests/mutants/listed.py, by hand: do the tests see it? It takes more than an hour.
# make sanitize: set up, then build the kernels with the address and undefined-behaviour sanitizers, by hand, and run the tests of tests/compiled on
# them, hostile calls of every function and hostile rows at every door among them. It takes some minutes, and gcc with its run-time libraries.
# make release-check: set up, then does code that makes numbers differ from the last release's? Writes tests/house/numbers.txt for this one.
# make release: set up, then sdist and wheel of the commit, checks of both in environments of their own, and the tag. Some ten minutes, and PyPI.
# make docs: set up in a folder of its own, then the pages, the reference and the gallery as a site in build/site, opened page by page in a browser.
# Needs Python 3.11 or newer, a C compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The build looks for meson and ninja on the PATH, and an editable install rebuilds its compiled part with ninja when a source changed.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# By its full path, so that the rebuild also works for .venv/bin/advcli without the PATH.
export CYTHON := $(CURDIR)/$(BIN)/cython
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: rebuilt run test test-slow mutants assault sanitize check release-check release lint types bench docs lowest clean

run: $(VENV)/.installed
	$(BIN)/advcli +experiment=quickstart

# An editable install keeps no bytecode: without it every process compiles the package, a sixth of the start of a command.
BYTECODE := $(BIN)/python -m compileall -q advcli

# An import compiles what has changed since the last one: here once, before several processes of tests do it at the same time.
rebuilt: $(VENV)/.installed-test
	$(BIN)/python -c "import advcli"
	$(BYTECODE)

# One process of tests for each core, and one thread of linear algebra for each of them.
test: rebuilt
	$(MAKE) --jobs 2 lint types check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal

test-slow: rebuilt
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow --numprocesses auto --dist worksteal

# Hostile command lines, files, models, inputs and kills; ends with a table of how many ended well.
assault: rebuilt
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m assault --numprocesses auto --dist worksteal

# Chosen ones: make mutants ONLY=advcli/results/proofs.py
mutants: $(VENV)/.installed-test
	$(BIN)/python tests/mutants/run.py $(if $(ONLY),--only '$(ONLY)') --jobs $(or $(JOBS),1)

# In a build folder of its own; tests/sanitize/sitecustomize.py puts its modules in the place of the installed ones.
SANITIZED := $(CURDIR)/build/sanitized
sanitize: $(VENV)/.installed-test
	test -f $(SANITIZED)/build.ninja || $(BIN)/meson setup $(SANITIZED) . -Dlevels=$(or $(LEVELS),avx2) \
	  -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized -Doptimization=1
	$(BIN)/ninja -C $(SANITIZED)
	LD_PRELOAD="$(foreach library,libasan.so libubsan.so libstdc++.so.6,$$($(CC) -print-file-name=$(library)))" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc OMP_NUM_THREADS=1 \
	  ADVCLI_SANITIZED=$(SANITIZED) PYTHONPATH=tests/sanitize $(BIN)/python -m pytest tests/compiled $(or $(TESTS),-m "slow or not slow")

# Did the numbers move? A fresh folder, so that this version computes every row. `advcli check ... --update` writes a new baseline.
check: $(VENV)/.installed
	rm -rf results/ci_check
	$(BIN)/advcli +experiment=ci_check
	$(BIN)/advcli check results=results/ci_check baseline=results/baselines/ci_check.csv junit=results/ci_check/junit.xml

# SAME_ROWS=1 where code has changed and no row of any cell can differ.
release-check: $(VENV)/.installed-test
	$(BIN)/python tests/house/test_house_numbers.py $(if $(SAME_ROWS),--same-rows)

release: $(VENV)/.installed-test
	.ci/release

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/speed/run.py

# With an environment of its own, which installs the package as users do. A warning of Sphinx is an error.
SITE := $(CURDIR)/build/site
docs: $(VENV)/.installed-test
	test -d $(VENV)-docs || $(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet ".[docs]"
	cd docs && $(CURDIR)/$(VENV)-docs/bin/python -m sphinx -W --keep-going -b html -c site . $(SITE)
	ADVCLI_SITE=$(SITE) $(BIN)/python -m pytest -m "slow or not slow" tests/system/test_system_docs_site.py

# The lowest versions of packages that pyproject.toml allows, in an environment of their own: estimators, data and the command line.
lowest: $(VENV)/.installed-test
	mkdir -p build
	$(BIN)/python tests/house/lowest.py > build/lowest.txt
	test -d $(VENV)-lowest || $(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --constraint build/lowest.txt ".[test,tables,export]"
	cd tests && OMP_NUM_THREADS=1 ../$(VENV)-lowest/bin/python -m pytest -m "not slow" --rootdir .. learners data cli

clean:
	rm -rf $(VENV) $(VENV)-docs $(VENV)-lowest build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp stands for a finished step; it is redone when the build description changes.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "advcli needs Python 3.11 or newer, found $$($(PYTHON) --version); use: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.build-tools: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet "meson-python>=0.18" "meson>=1.3" "ninja>=1.11.1" "cython>=3.1" "setuptools>=70.1"
	touch $@

$(VENV)/.installed: $(VENV)/.build-tools pyproject.toml meson.build meson.options
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	$(BYTECODE)
	touch $@

$(VENV)/.installed-test: $(VENV)/.build-tools pyproject.toml meson.build meson.options
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[test]"
	$(BYTECODE)
	touch $(VENV)/.installed $@
