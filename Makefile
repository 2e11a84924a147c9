# Every target makes the virtual environment it needs; none needs root, Docker or a service that already runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The clients that tests/clients runs: what they need differs from what the project needs, and among themselves.
CLIENTS := .venv-clients
# The servers of others that tests/fleet runs against.
SERVERS := .servers
# What is installed lives outside the clone, by the hash of what it is made from, and is linked from here.
CACHE = $(PYTHON) requirements/cache.py
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --quiet

.PHONY: serve test test-all budgets quick format demo pictures chaos outage coldstart bench bench-analytics soak fuzz lint types imports \
	migrations openapi static check sbom typescript clients agents exporters openid servers installed fleet lock clean base dev python

# Containers often set it, and then each of the hundreds of processes of the suite compiles the product's modules anew.
unexport PYTHONDONTWRITEBYTECODE

serve: base
	$(BIN)/python manage.py serve

# The whole suite and, beside it, all that `make check` checks; with ARGS one plain pytest. Each behaviour once.
test: dev
	$(if $(ARGS),,+@$(MAKE) --no-print-directory -j6 installed)
	$(BIN)/python -m tests.run $(ARGS)

# The night: full matrices, long fuzzing, histories of accidents (CONTRIBUTING.md, "Day and night").
test-all: dev
	+@$(MAKE) --no-print-directory -j6 installed
	NIGHT=1 $(BIN)/python -m tests.run $(ARGS)

# Takes over what the last `make test` used, and the lines of today, where they are below their budgets.
budgets: dev
	$(BIN)/python -m tests.budgets

# The checks that end within a minute: the linters, the types, and those tests of some apps that need no store.
quick: lint imports types
	$(BIN)/pytest --no-stores -q tests/core tests/prompts tests/rollouts $(ARGS)

demo: base
	$(BIN)/python manage.py demo $(ARGS)

# Takes the pictures of the README and of docs/ anew; ARGS="home session" takes some of them.
pictures: dev
	$(BIN)/python -m tests.browser.pictures $(ARGS)

# Plays a random history of accidents under traffic; ARGS="--seed 7 --seconds 600" replays the one of a seed.
chaos: dev
	$(BIN)/python -m tests.journeys.history $(ARGS)

# Takes all stores away for five minutes, while applications fetch prompts.
outage: dev typescript
	PYTHONPATH=clients/python/src $(BIN)/python -m tests.clients.applications.outage $(ARGS)

# Starts without ClickHouse for five minutes, and kills the engine of a fresh service 20 times.
coldstart: dev
	$(BIN)/python -m tests.live.start $(ARGS)

# What a fleet is made of: replicas, Sentinel, Redis Cluster, PgBouncer, HAProxy. ARGS are pytest's.
fleet: dev
	$(BIN)/pytest $(or $(ARGS),-q) tests/fleet

bench: dev
	$(BIN)/python -m benchmarks.gateway $(ARGS)

bench-analytics: dev
	$(BIN)/python -m benchmarks.analytics $(ARGS)

# Runs for an hour with ARGS="--seconds 3600".
soak: dev
	$(BIN)/python -m benchmarks.soak $(ARGS)

# Runs for four hours with ARGS="--seconds 14400".
fuzz: dev
	$(BIN)/python -m tests.fuzzing $(ARGS)

format: dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: dev
	$(CACHE) run mypy requirements/dev.lock -- $(BIN)/mypy --cache-dir={}

imports: dev
	$(BIN)/lint-imports

migrations: dev
	$(BIN)/python manage.py makemigrations --check --dry-run

openapi: dev
	file=$$(mktemp) && $(BIN)/python manage.py spectacular --validate --fail-on-warn --file $$file \
		&& $(BIN)/openapi-spec-validator $$file && rm $$file

# What needs no Node.js. The suite runs it beside its tests, and its tests of the clients have `typescript` made.
static: lint imports types migrations openapi

check: static typescript

# Checks the client for TypeScript, and compiles it for tests/clients.
typescript: $(CLIENTS)/typescript
	$(CLIENTS)/typescript/node_modules/.bin/tsc -p clients/typescript --typeRoots $(CLIENTS)/typescript/node_modules/@types \
		--outDir $(CLIENTS)/typescript/dist

# The lock names versions and hashes only; chdb-core's unused pandas and pyarrow stay out (see pyproject.toml).
lock: dev
	$(BIN)/pip install --quiet uv
	$(COMPILE) pyproject.toml --extra embedded --extra daphne --extra demo -o requirements/base.lock
	$(COMPILE) pyproject.toml -c requirements/base.lock -o requirements/server.lock
	$(COMPILE) pyproject.toml --extra embedded --extra daphne --extra demo --group dev -c requirements/base.lock -o requirements/dev.lock
	$(COMPILE) requirements/clients.in --only-binary :all: -o requirements/clients.lock
	$(COMPILE) requirements/clients-openai-2.in --only-binary :all: -o requirements/clients-openai-2.lock
	$(COMPILE) requirements/clients-aider.in --only-binary :all: -o requirements/clients-aider.lock
	$(COMPILE) requirements/clients-exporters.in --only-binary :all: -o requirements/clients-exporters.lock
	npm install --prefix tests/clients/agents --package-lock-only --omit-lockfile-registry-resolved --no-fund
	npm install --prefix tests/clients/exporters/node --package-lock-only --omit-lockfile-registry-resolved --no-fund
	npm install --prefix tests/clients/node --package-lock-only --omit-lockfile-registry-resolved --no-fund
	npm install --prefix tests/sign_in/provider --package-lock-only --omit-lockfile-registry-resolved --no-fund
	npm install --prefix clients/typescript --package-lock-only --omit-lockfile-registry-resolved --no-fund

# What the images are made of, for whoever looks for packages with known faults (CycloneDX): sbom/server.cdx.json, sbom/base.cdx.json.
sbom: dev
	mkdir -p sbom
	for part in server base; do $(BIN)/cyclonedx-py requirements requirements/$$part.lock --pyproject pyproject.toml \
		--output-reproducible --output-file sbom/$$part.cdx.json || exit 1; done

# Other programs, which a test that needs one would otherwise install itself, at the cost of its own unit. They wait for
# registries, so that several are fetched at once.
installed: clients agents exporters openid servers $(CLIENTS)/typescript

clients: $(CLIENTS)/python $(CLIENTS)/python-openai-2 $(CLIENTS)/node

# Coding agents of others, which the tests run over all vendors: 2 GB.
agents: $(CLIENTS)/agents $(CLIENTS)/python-aider

# Instrumentations with their exporters, which send the gateway traces.
exporters: $(CLIENTS)/python-exporters $(CLIENTS)/node-exporters

# An OpenID provider, at which tests sign in.
openid: $(CLIENTS)/openid

# Debian's redis-server, redis-sentinel, redis-tools, pgbouncer, haproxy and prometheus (for promtool), unpacked without root.
servers: python
	@$(CACHE) folder $(SERVERS) tests/fleet/unpack.py -- $(PYTHON) tests/fleet/unpack.py {}

# A virtual environment of its own for each group of clients that differ in what they need.
VENVS := python python-openai-2 python-aider python-exporters
.PHONY: $(VENVS:%=$(CLIENTS)/%)
$(CLIENTS)/python: KEY := requirements/clients.lock
$(CLIENTS)/python-openai-2: KEY := requirements/clients-openai-2.lock
$(CLIENTS)/python-aider: KEY := requirements/clients-aider.lock
$(CLIENTS)/python-exporters: KEY := requirements/clients-exporters.lock

$(VENVS:%=$(CLIENTS)/%): dev
	@$(CACHE) folder $@ $(KEY) -- sh -ec '$(BIN)/python -m venv {}; {}/bin/pip install --quiet --disable-pip-version-check \
		--no-compile --no-deps --only-binary :all: --require-hashes -r $(KEY)'

NODES := agents node node-exporters openid typescript
.PHONY: $(NODES:%=$(CLIENTS)/%)
# Registries differ in which other systems' packages they have, and `npm ci` insists that the lock has all of them.
$(CLIENTS)/agents: NPM := npm install --no-save
$(CLIENTS)/agents: KEY := tests/clients/agents/package-lock.json
$(CLIENTS)/node: KEY := tests/clients/node/package-lock.json
$(CLIENTS)/node-exporters: KEY := tests/clients/exporters/node/package-lock.json
$(CLIENTS)/openid: KEY := tests/sign_in/provider/package-lock.json
$(CLIENTS)/typescript: KEY := clients/typescript/package-lock.json

$(NODES:%=$(CLIENTS)/%): python
	@command -v npm node >/dev/null || { echo "npm or node is missing: install Node.js for the clients of tests/clients" >&2; exit 1; }
	@$(CACHE) folder $@ $(KEY) -- sh -ec 'cp $(dir $(KEY))package.json $(KEY) {}; \
		$(or $(NPM),npm ci) --prefix {} --ignore-scripts --no-audit --no-fund --loglevel=error'

# What serving needs, and all that development needs; the latter holds the former.
base dev: python
	@$(CACHE) venv $@ $(VENV) $(if $(filter file,$(origin PYTHON)),,--chosen)

python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: Prompt Gateway needs Python 3.11 or later" >&2; exit 1; }

# Leaves the cache of requirements/cache.py, which other clones may use.
clean:
	rm -rf $(VENV) $(CLIENTS) $(SERVERS) var
