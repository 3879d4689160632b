# Every target works in a fresh clone: what it needs is installed into .venv and the cache first, and only once. The cache
# is shared by all clones of a user: S3SINK_CACHE, by default s3sink in XDG_CACHE_HOME or ~/.cache.
# Needed beforehand: Python 3.11 or newer, Java 17, and Go for the S3 server of the data tests.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
SETUP = $(PYTHON) -m tools.setup
# Servers start when the first test asks for them: a broker for all workers, others for each. A file's tests stay with
# one worker.
# WORKERS=... is their number at every level; without it `make test` has as many as tools/workers.py gives, others two.
WORKERS ?=
CRD := crds/s3sinks.s3sink.io.yaml
# The chart brings the same text: helm reads nothing outside of a chart's folder.
CHARTS_CRD := $(wildcard charts/s3sink-operator/files/crd.yaml)
PYTEST = $(BIN)/python -m pytest -n $(or $(WORKERS),2) --dist loadfile --no-loadscope-reorder
# Every test is in exactly one of `make test` and `make test-cluster`: tests/unit/test_levels.py.
CLUSTER := cluster or e2e
# They have no such test, so `make test-cluster` does not import them.
WITHOUT_CLUSTER := data model operator simulation unit
FAST := not data and not spark and not model and not site and not cluster and not e2e
# The seed of the random tests. S3SINK_SEED=random is what the nightly workflow uses: a new seed, which is printed.
S3SINK_SEED ?= 1
ifeq ($(S3SINK_SEED),random)
override S3SINK_SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif
export S3SINK_SEED
# Workers, s3sink processes and Spark's Python workers would compile all modules again, and pytest rewrite all assertions.
unexport PYTHONDONTWRITEBYTECODE
# Further arguments: make test ARGS="-k transactions", make bench ARGS="--quick".
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup lock crd golden chart demo demo-up demo-down demo-cluster recording test test-fast test-cluster prepare-cluster \
	prepare-test compile-tests coverage chaos fuzz mutate soak lint lint-workflows docs format bench bench-operator clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## .venv from requirements.lock (every other target does it first)
	@$(SETUP)

demo: ## a real broker, an S3 server, 336,776 flights, a kill -9, and the proof that nothing is lost or duplicated (ARGS=--avro, --parquet, --table)
	@$(SETUP) s3-server jars $(if $(filter --avro,$(ARGS)),schema-registry)
	@$(BIN)/python -m demo run $(ARGS)

recording: setup ## docs/images/demo.svg, the picture of the README, from a run of the demo
	@$(BIN)/python -m devtools.recording $(ARGS)

demo-up: ## the demo's servers and its topic, left running to play with
	@$(SETUP) s3-server jars class-archive
	@$(BIN)/python -m demo up

demo-down: setup ## ends what demo-up started
	@$(BIN)/python -m demo down

test-fast: setup ## the tests that start no server, no Spark and no long search of the model
	@$(PYTEST) -m "$(FAST)" --hypothesis-profile=fast $(ARGS)

test: WORKERS := $(or $(WORKERS),$(shell $(PYTHON) tools/workers.py))
test: prepare-test ## all tests but those of test-cluster: unit, model, simulation, and data on a real broker and S3 server
	@echo "test: S3SINK_SEED=$(S3SINK_SEED)"
	@$(PYTEST) -m "not ($(CLUSTER))" $(ARGS)

compile-tests: setup # the bytecode of all tests and of what they import; otherwise each worker compiles it after a clone
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null

test-cluster: prepare-cluster ## the tests on a real Kubernetes API server, of the chart and the images, and on a real node
	@$(PYTEST) -m "$(CLUSTER)" $(addprefix --ignore=tests/,$(WITHOUT_CLUSTER)) $(ARGS)

prepare-test: # what `make test` needs
	@$(SETUP) s3-server schema-registry jars class-archive kafka-classes chromium docs

prepare-cluster: ## what test-cluster builds once a machine: Kubernetes and tools, Prometheus, Argo CD's health check, images
	@$(SETUP) s3-server schema-registry jars kubernetes prometheus argocd kube-state-metrics kube-router images chromium

coverage: setup ## branch coverage of the fast tests, with the minimum of pyproject.toml
	@$(PYTEST) -m "$(FAST)" --hypothesis-profile=fast --cov --cov-report=term:skip-covered $(ARGS)

chaos: setup ## whole sinks in simulated time under random faults for an hour (ARGS="--minutes 5 --seed N", ARGS=--real)
	@$(BIN)/python -m devtools.chaos $(ARGS)

soak: setup ## load for 8 hours with restarts and edits; fails if memory, open files or consumers grow (ARGS="--hours 1")
	@$(BIN)/python -m devtools.soak $(ARGS)

fuzz: setup ## random and mutated values and schemas for each converter (ARGS="--converter Avro --seconds 600 --seed N")
	@$(BIN)/python -u -m devtools.fuzz $(ARGS)

mutate: setup ## defects in the protocol's code: which level of the tests finds them (ARGS="--sample 60 --seed 1", ARGS=--report)
	@$(BIN)/python -u -m devtools.mutation $(ARGS)

lint: setup ## ruff, mypy --strict, import-linter, replaced words, and whether the CRD is what the models make
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m tools.type_check
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tools/check_words.py
	@$(BIN)/python -m s3sink_operator.crd --check $(CRD) $(CHARTS_CRD)

lint-workflows: ## .github/workflows with actionlint, which Go builds
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

crd: setup ## crds/, the CustomResourceDefinition, from the models of sink_job.api, and the chart's copy
	@$(BIN)/python -m s3sink_operator.crd > $(CRD).new
	@mv $(CRD).new $(CRD)
	@for copy in $(CHARTS_CRD); do cp $(CRD) $$copy; done

golden: setup ## accept a change of keys, bytes or ledger types: make golden ENTRY="part of its entry in CHANGELOG.md"
	@PYTHONPATH=operator $(BIN)/python -m tests.golden --entry "$(ENTRY)"

chart: setup ## what the chart and Argo CD keep as copies: the table of values, the CRD, the settings of argocd-cm
	@$(BIN)/python tools/chart.py

docs: ## the documentation site in build/site, with all links and anchors checked (needs npm)
	@$(SETUP) docs
	@$(BIN)/python -m devtools.docs_site $(ARGS)

format: setup ## automatic fixes of ruff
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

demo-cluster: setup ## the same on a Kubernetes of one node (or ARGS="--context …"): chart, sink, a lost driver, the proof
	@$(BIN)/python -m demo.cluster $(ARGS)

bench: setup ## throughput, CPU and memory, beside Spark's reader and a plain consumer into nothing
	@$(BIN)/python -m bench $(ARGS)

bench-operator: setup ## up to 1,000 sinks on a real API server: launches, lags, writes, CPU and memory of the operator
	@$(BIN)/python -m bench.operator $(ARGS)

lock: setup ## requirements.lock from pyproject.toml, and the images' parts of it (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --upgrade --extra job --extra tables --extra operator --extra dev \
		--custom-compile-command "make lock" pyproject.toml -o requirements.lock
	echo 'setuptools>=77' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --upgrade --no-annotate \
		--custom-compile-command "make lock" - -o container/build.lock
	echo uv | uv pip compile -q --universal --python-version 3.11 --generate-hashes --upgrade --no-annotate \
		--custom-compile-command "make lock" - -o tools/uv.lock
	for name in duckdb duckdb-extension-iceberg duckdb-extension-httpfs duckdb-extension-avro; do echo "$$name==1.5.5"; done \
		| uv pip compile -q --universal --python-version 3.11 --generate-hashes --upgrade --no-annotate \
		--custom-compile-command "make lock" - -o tools/iceberg_reader.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --upgrade --no-annotate --extra docs \
		--custom-compile-command "make lock" pyproject.toml -o tools/docs.lock
	@$(SETUP)
	@$(BIN)/python tools/locks.py

clean: ## everything made by the targets above, but the cache of jars and servers
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info out
	find . -name __pycache__ -not -path './.cache/*' -prune -exec rm -rf {} +
