# Every target makes the virtual environment it needs; none needs root, Docker or a service that already runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The clients that tests/clients runs: what they need differs from what the project needs, and among themselves.
CLIENTS := .venv-clients
# The servers of others that tests/fleet runs against.
SERVERS := .servers
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --quiet

.PHONY: serve test quick format demo pictures chaos outage coldstart bench bench-analytics soak fuzz lint types imports migrations openapi \
	static check sbom typescript clients agents exporters openid servers fleet lock clean base dev

# Containers often set it, and then each of the hundreds of processes of the suite compiles the product's modules anew.
unexport PYTHONDONTWRITEBYTECODE

serve: base
	$(BIN)/python manage.py serve

# The whole suite and, beside it, all that `make check` checks; with ARGS one plain pytest.
test: dev
	$(BIN)/python -m tests.run $(ARGS)

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
fleet: dev servers
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
	$(BIN)/mypy

imports: dev
	$(BIN)/lint-imports

migrations: dev
	$(BIN)/python manage.py makemigrations --check --dry-run

openapi: dev
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file $(VENV)/openapi.yaml
	$(BIN)/openapi-spec-validator $(VENV)/openapi.yaml

# What needs no Node.js. The suite runs it beside its tests, and its tests of the clients have `typescript` made.
static: lint imports types migrations openapi

check: static typescript

# Checks the client for TypeScript, and compiles it for tests/clients.
typescript: $(CLIENTS)/typescript/.ready
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

clients: $(CLIENTS)/python/.ready $(CLIENTS)/python-openai-2/.ready $(CLIENTS)/node/.ready

# Coding agents of others, which the tests run over all vendors: 2 GB.
agents: $(CLIENTS)/agents/.ready $(CLIENTS)/python-aider/.ready

# Instrumentations with their exporters, which send the gateway traces.
exporters: $(CLIENTS)/python-exporters/.ready $(CLIENTS)/node-exporters/.ready

# An OpenID provider, at which tests sign in.
openid: $(CLIENTS)/openid/.ready

# Debian's redis-server, redis-sentinel, redis-tools, pgbouncer and haproxy, unpacked without root.
servers: $(SERVERS)/.ready

$(SERVERS)/.ready: tests/fleet/unpack.py
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: Prompt Gateway needs Python 3.11 or later" >&2; exit 1; }
	rm -rf $(@D)
	$(PYTHON) $< $(@D)
	touch $@

$(CLIENTS)/python/.ready: requirements/clients.lock
$(CLIENTS)/python-aider/.ready: requirements/clients-aider.lock
$(CLIENTS)/python-exporters/.ready: requirements/clients-exporters.lock
$(CLIENTS)/python-openai-2/.ready: requirements/clients-openai-2.lock

$(CLIENTS)/python/.ready $(CLIENTS)/python-openai-2/.ready $(CLIENTS)/python-aider/.ready $(CLIENTS)/python-exporters/.ready: | dev
	rm -rf $(@D)
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-compile --no-deps --only-binary :all: \
		--require-hashes -r $<
	touch $@

$(CLIENTS)/agents/.ready: tests/clients/agents/package-lock.json
# Registries differ in which other systems' packages they have, and `npm ci` insists that the lock has all of them.
$(CLIENTS)/agents/.ready: NPM := npm install --no-save
$(CLIENTS)/node/.ready: tests/clients/node/package-lock.json
$(CLIENTS)/node-exporters/.ready: tests/clients/exporters/node/package-lock.json
$(CLIENTS)/openid/.ready: tests/sign_in/provider/package-lock.json
$(CLIENTS)/typescript/.ready: clients/typescript/package-lock.json

$(CLIENTS)/agents/.ready $(CLIENTS)/node/.ready $(CLIENTS)/node-exporters/.ready $(CLIENTS)/openid/.ready $(CLIENTS)/typescript/.ready:
	@command -v npm node >/dev/null || { echo "npm or node is missing: install Node.js for the clients of tests/clients" >&2; exit 1; }
	mkdir -p $(@D)
	cp $(<D)/package.json $(<D)/package-lock.json $(@D)
	$(or $(NPM),npm ci) --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# What serving needs, and all that development needs; the latter holds the former.
base dev:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: Prompt Gateway needs Python 3.11 or later" >&2; exit 1; }
	@$(PYTHON) requirements/install.py $@ $(VENV) $(if $(filter file,$(origin PYTHON)),,--chosen)

clean:
	rm -rf $(VENV) $(CLIENTS) $(SERVERS) var
