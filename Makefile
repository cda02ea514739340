# Every target sets up what it needs: a virtual environment in .venv, from the hash-locked
# requirements/*.txt. Nothing but Python 3.11 or later (with venv) is needed on the machine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed
COMPILED := $(VENV)/.tests-compiled
OLDEST := .venv-oldest
AUDIT := .venv-audit

PYTEST := $(BIN)/pytest --maxprocesses=4 --dist loadfile --no-loadscope-reorder

# The tests start hundreds of Python processes, which would compile hundreds of modules each.
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help serve check test test-kafka test-damages test-oldest lint types imports pytest coverage bench bench-compare soak format docs lock sbom \
	audit-dependencies dist image up spark clean

help: ## What there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(RUN) ## Three brokers on 127.0.0.1:9092-9094, control on 9644, until Ctrl-C; ARGS="--port 0" for free ports
	@exec $(BIN)/fencepost serve --brokers 3 $(ARGS)

# Three workers, on two processors as well: one of them often waits for a clock or a socket.
check: lint imports types ## Style, types, imports, and the tests that start no other process
	$(PYTEST) -n 3 --in-process -r fE $(ARGS)

# The type checker uses one processor, and the tests wait for others now and then.
test: lint imports ## Everything that must pass before a commit
	@$(MAKE) --no-print-directory --jobs=2 types pytest

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.prose

types: $(DEV)
	$(BIN)/mypy

imports: $(DEV)
	$(BIN)/lint-imports --no-logo

# Four workers, on two processors as well: tests wait for other processes as much as they compute.
pytest: $(COMPILED) ## The tests alone; ARGS="-k name" picks some
	$(PYTEST) -n 4 $(ARGS)

# Apart from `make test`, as measuring takes a processor minutes.
coverage: $(COMPILED) ## The tests with the branches of the code that they execute, 95 % at least
	$(PYTEST) -n 4 --cov --cov-report=term $(ARGS)

test-kafka: $(DEV) ## Kafka's own tests of tools and clients, all of them (ten minutes); ARGS="CLASS CLASS#METHOD" picks some
	$(BIN)/python -m tests.kafka $(ARGS)

test-damages: $(DEV) ## Fifty-seven damages to what fencepost and a real Kafka wrote, each named by an audit
	$(BIN)/python -m tests.pipeline.damages $(ARGS)

# Old packages use what newer ones, among those that they need, have deprecated.
test-oldest: $(OLDEST)/.installed ## The tests in one process with the oldest versions that pyproject.toml allows
	PYTHONPYCACHEPREFIX=$(CURDIR)/$(OLDEST)/pycache $(OLDEST)/bin/pytest --maxprocesses=4 \
		--dist loadfile --no-loadscope-reorder -n auto --in-process -r fE \
		-W ignore::DeprecationWarning $(ARGS)

bench: $(DEV) ## fencepost and kfake side by side in five minutes; ARGS="--full" for all of docs/performance.md
	$(BIN)/python -m bench $(ARGS)

bench-compare: $(DEV) ## The last two commits whose results `make bench` has kept; ARGS="OLD NEW" picks two
	$(BIN)/python -m bench compare $(ARGS)

soak: $(DEV) ## An hour of mixed load with elections, failures and faults; FENCEPOST_SOAK_S=600 for ten minutes
	$(BIN)/python -m bench.soak

format: $(DEV) ## Mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV) ## Write the generated tables of README.md and docs/
	$(BIN)/python -m docs.generate

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-strip-extras --no-emit-index-url --no-emit-find-links

# One resolution for all of them, so that they can be installed together.
lock: ## Lock the newest versions that pyproject.toml allows (needs uv)
	$(LOCK) --upgrade pyproject.toml --extra tier --extra spark --group dev --output-file requirements/all.in
	$(LOCK) --constraint requirements/all.in pyproject.toml --output-file requirements/run.txt
	$(LOCK) --constraint requirements/all.in pyproject.toml --extra tier --output-file requirements/tier.txt
	$(LOCK) --constraint requirements/all.in pyproject.toml --extra tier --extra spark --output-file requirements/spark.txt
	for group in build lint s3 test; do \
		$(LOCK) --constraint requirements/all.in --group $$group --output-file requirements/$$group.txt || exit; \
	done
	rm requirements/all.in
	for group in audit quixstreams; do \
		$(LOCK) --upgrade --group $$group --output-file requirements/$$group.txt || exit; \
	done
	$(PYTHON) -m tools.oldest > requirements/oldest.in
	$(LOCK) --upgrade --constraint requirements/oldest.in pyproject.toml --extra tier --extra spark --group build --group test \
		--output-file requirements/oldest.txt
	rm requirements/oldest.in

# What is installed: what runs, and with each extra. The tools of this repository are in no installation.
SBOM := build/sbom
SBOM_OF := run tier spark
sbom: $(AUDIT)/.installed ## The software bills of materials in build/sbom, as CycloneDX
	mkdir -p $(SBOM)
	for lock in $(SBOM_OF); do \
		PYTHONWARNINGS=ignore $(AUDIT)/bin/cyclonedx-py requirements requirements/$$lock.txt --pyproject pyproject.toml \
			--output-reproducible --short-PURLs --validate --output-file $(SBOM)/$$lock.cdx.json || exit; \
	done

# --strict: what the service does not know counts as a failure, for it was not looked at.
audit-dependencies: $(AUDIT)/.installed ## Known vulnerabilities of all locked versions (ARGS="--vulnerability-service osv" asks another service)
	$(AUDIT)/bin/python -m tools.audit_dependencies --strict --disable-pip --require-hashes --progress-spinner off \
		$(patsubst %,--requirement requirements/%.txt,run tier spark build lint test audit quixstreams) $(ARGS)

dist: $(RUN) ## The wheel and the sdist in dist/
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

image: ## The container image, with Docker or what DOCKER names; ARGS="--build-arg BASE=..." on another base
	$${DOCKER:-docker} build -t fencepost $(ARGS) .

up: ## Three brokers in a container, reachable from this machine and from other containers
	$${DOCKER:-docker} compose up --build

spark: $(RUN) ## What the jobs on Spark need, in the environment of `make serve`
	$(PIP) install --quiet --require-hashes -r requirements/spark.txt
	$(BIN)/fencepost spark setup

clean: ## Forget the virtual environment and every cache
	rm -rf $(VENV) $(OLDEST) $(AUDIT) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage

# An editable install, so that what is edited is what is served.
INSTALL_PROJECT := $(PIP) install --quiet --no-deps --no-build-isolation --editable .

# A checkout has the tier too.
$(RUN): requirements/tier.txt requirements/build.txt pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --require-hashes -r requirements/tier.txt -r requirements/build.txt
	$(INSTALL_PROJECT)
	@touch $@

# Not compiled: most of what the linters and Spark bring is never imported, and the rest is compiled then.
$(DEV): $(wildcard requirements/*.txt) pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --no-compile --require-hashes $(patsubst %,-r requirements/%.txt,run spark build lint test)
	$(INSTALL_PROJECT)
	@touch $(RUN) $@

# Each worker collects all tests, so without this each would compile all of them at the same time.
# What cannot be collected is told by the tests themselves.
$(COMPILED): $(DEV)
	$(BIN)/pytest --collect-only -qq > /dev/null || true
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'fencepost needs Python 3.11 or later; name one with make PYTHON=...' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo 'python -m venv failed; on Debian: apt-get install python3-venv' >&2; exit 1; }

# Environments beside .venv, for versions that it cannot have.
$(OLDEST)/.installed: requirements/oldest.txt pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(AUDIT)/.installed: requirements/audit.txt
	$(PYTHON) -m venv --clear $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@
