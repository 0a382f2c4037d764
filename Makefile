# Everything starts here; each target first makes the machine ready, which takes no time when it is.

BIN := .venv/bin
SERVERS := $(BIN)/python -m benchmarks.servers --directory var/check/servers --
COMPILE := $(BIN)/uv pip compile --quiet --no-header --annotation-style line --universal --python-version 3.11 --generate-hashes
# mypy's Django plugin reads the settings, which have no defaults for these; nothing is connected to.
SETTINGS := SECRET_KEY=unused DATABASE_URL=mysql://nowhere/none \
	STOCK_REDIS_URL=redis://nowhere CACHE_REDIS_URL=redis://nowhere
# What is tried once more with the stock in a Redis Cluster: the gate's contract, races, settlement, losses.
CLUSTERED := tests/cluster tests/seckill/gate $(addprefix tests/seckill/test_,races.py settlement.py returns.py redis_loss.py \
	transfers.py)
MAKEFLAGS += --no-builtin-rules --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help prepare demo up faults bench bench-full bench-guard bench-returns bench-stages bench-archive bench-desk check test test-fast soak format lock migrations clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

prepare: ## Install what is missing: system packages, then .venv.
	@bash benchmarks/prepare

demo: prepare ## Let 2,000 buyers race for 100 units; the report is in var/demo.
	@$(BIN)/python -m benchmarks.demo

up: prepare ## Run the shop with a sale about to open, until Ctrl-C.
	@$(BIN)/python -m benchmarks.up

faults: prepare ## Kill, stop and restart each part in the middle of a rush; ARGS=--small for CI's size.
	@$(BIN)/python -m benchmarks.faults $(ARGS)

bench: ## Measure purchases, answers, polls and settlement, in ten minutes; var/bench/report.json, ARGS="--only a,b".
	@bash benchmarks/prepare bench
	@$(BIN)/python -m benchmarks.bench $(ARGS)

bench-full: ## Measure all that and more, with a million buyers; benchmarks/README.md says what.
	@bash benchmarks/prepare bench
	@$(BIN)/python -m benchmarks.bench --full $(ARGS)

bench-guard: prepare ## Fail when a purchase takes more processor time than it may, on a quiet machine or not.
	@$(BIN)/python -m benchmarks.bench.guard $(ARGS)

bench-returns: prepare ## Measure how soon the units of closed orders can be bought again; var/bench/returns.json.
	@$(BIN)/python -m benchmarks.returns $(ARGS)

bench-stages: ## Measure what timing the stages of purchases costs; var/bench/stages.json.
	@bash benchmarks/prepare bench
	@$(BIN)/python -m benchmarks.stages $(ARGS)

bench-archive: prepare ## Archive a million buyers; ARGS="--buyers 100000". The result is in var/bench.
	$(BIN)/python -m benchmarks.archive $(ARGS)

bench-desk: prepare ## Open every page of the desk with a million buyers behind it; var/bench/desk.json.
	@$(BIN)/python -m benchmarks.desk $(ARGS)

.PHONY: bench-durable
bench-durable: prepare ## Measure what the durable mode costs; var/bench/durable.json.
	@$(BIN)/python -m benchmarks.durable $(ARGS)

.PHONY: bench-cluster
bench-cluster: prepare ## Measure the stock on 1, 3 and 6 Redis nodes, and a failover; var/bench/cluster.json.
	@$(BIN)/python -m benchmarks.cluster $(ARGS)

check: prepare ## Lint, check types, imports, migrations and the settings for production.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(SETTINGS) $(BIN)/mypy .
	$(BIN)/lint-imports
	luacheck --quiet seckill/gate/lua
	$(BIN)/djlint --lint --quiet templates
	$(SERVERS) $(BIN)/python manage.py makemigrations --check --dry-run
	$(SERVERS) env HTTPS=1 PUBLIC_URL=https://shop.example $(BIN)/python manage.py check --deploy --fail-level WARNING --database default
	$(SETTINGS) $(BIN)/python -m benchmarks.schema_changes
	$(BIN)/python -m benchmarks.licences
	$(BIN)/python -m benchmarks.audit

test: prepare ## Run all tests on real servers; ARGS="-k name" to choose.
	@bash benchmarks/prepare browser promtool bench nginx dump rehearsal rabbitmq
	$(BIN)/python -m pytest -n 2 --ignore tests/e2e --ignore tests/browser $(ARGS)
	$(BIN)/python -m pytest -n 2 --cluster $(CLUSTERED) $(ARGS)
	@# The running shop alone, and then the browser: they measure, and two of them would be in each other's way.
	$(BIN)/python -m pytest tests/e2e $(ARGS)
	$(BIN)/python -m pytest tests/browser $(ARGS)

test-fast: prepare ## Run the tests that take less than a minute together.
	@bash benchmarks/prepare promtool
	$(BIN)/python -m pytest -n 2 -m "not slow" --ignore tests/browser $(ARGS)

.PHONY: rehearsal
rehearsal: ## Rehearse a whole sale with locust, from the window to the payment; ARGS="--url …"; var/rehearsal/index.html.
	@bash benchmarks/prepare rehearsal
	@$(BIN)/python -m benchmarks.rehearsal $(ARGS)

.PHONY: test-matrix
test-matrix: ## Run the tests on MariaDB and MySQL, Redis and Valkey (root, Debian); var/matrix/report.json.
	@bash benchmarks/prepare debootstrap promtool
	@$(BIN)/python -m benchmarks.matrix $(ARGS)

.PHONY: test-fresh
test-fresh: ## Run the README's two commands on a bare Debian (root, Debian); ARGS="--only 'make demo'".
	@bash benchmarks/prepare debootstrap
	@$(BIN)/python -m benchmarks.fresh $(ARGS)

soak: prepare ## Run the machine of random operations and faults for minutes; SOAK_EXAMPLES=5000.
	SOAK_EXAMPLES=$${SOAK_EXAMPLES:-2000} $(BIN)/python -m pytest --timeout=0 -k "not control" tests/seckill/test_machine.py \
		tests/seckill/test_archive_machine.py tests/seckill/test_letter_machine.py $(ARGS)

format: prepare ## Put the code into its format.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: prepare ## Pin anew what requirements*.in ask for.
	$(COMPILE) $(ARGS) requirements.in --output-file requirements.txt
	$(COMPILE) $(ARGS) requirements-dev.in --output-file requirements-dev.txt
	$(COMPILE) $(ARGS) requirements-rehearsal.in --output-file requirements-rehearsal.txt

.PHONY: audit sbom licences
audit: prepare ## Ask the advisory database for known vulnerabilities of what is pinned.
	@$(BIN)/python -m benchmarks.audit

sbom: prepare ## Write what the shop is installed with as CycloneDX, for scanners; var/sbom.json.
	@mkdir -p var
	$(BIN)/python -W ignore -m cyclonedx_py requirements requirements.txt --pyproject pyproject.toml --mc-type application \
		--output-reproducible --output-file var/sbom.json

licences: prepare ## List the licences of what the shop is installed with; fails at one nobody has agreed to; var/licences.md.
	@$(BIN)/python -m benchmarks.licences

migrations: prepare ## Write the migrations that changed models need.
	$(SERVERS) $(BIN)/python manage.py makemigrations

.PHONY: messages
messages: prepare ## Collect what is to be translated into locale/, and compile what is.
	@bash benchmarks/prepare messages
	$(SETTINGS) $(BIN)/python manage.py makemessages --locale zh_Hans --add-location file --no-wrap --no-obsolete \
		--ignore '.venv*' --ignore var --ignore tests --ignore benchmarks
	$(SETTINGS) $(BIN)/python manage.py compilemessages --ignore .venv

.PHONY: schema
schema: prepare ## Write docs/openapi.yaml anew from the views.
	$(SETTINGS) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml

clean: ## Remove caches and all data of private servers; .venv stays.
	@# As root, in a directory closed to others, the servers' data is elsewhere, behind a symlink.
	@for link in $$(find var -type l -lname '*/seckill-servers-*' 2>/dev/null); do rm -rf "$$(readlink "$$link")"; done
	rm -rf var .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov
