# `make demo` and `make test` need only Python 3.11 (to 3.13) and make; each installs what it needs into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo demo-team demo-agents test net net-full test-postgres check size format crash fuzz soak soak-outside bench bench-load bench-semantic bench-team bench-notes bench-counting bench-context bench-extract bench-said bench-ui bench-agents bench-import bench-observing bench-instructions bench-keeper bench-plan sdk e2e docs dist dist-check packages sbom clean

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]' \
	    > $(VENV)/install.log 2>&1 || { cat $(VENV)/install.log; exit 1; }
	@touch $@

demo: $(STAMP)    ## the main job on three sample conversations, no key needed
	@$(BIN)/python -m tools.demo

demo-team: $(STAMP) ## team memory: a server, and two people with three devices, no key needed
	@$(BIN)/python -m tools.demo_team

demo-agents: $(STAMP) ## messages between agents: three agents, a shell, a receiver that is killed, no key needed
	@$(BIN)/python -m tools.demo_agents

test: $(STAMP)    ## every test that needs only Python
	@$(BIN)/python -m compileall -q -j 0 memd  # once, also where an environment forbids each start to
	@$(BIN)/python -m pytest -n auto -m "not crash and not e2e and not full and not soak and not postgres"

NET := $(BIN)/python -m pytest -n 3 tests/net --confcutdir=tests/net -rs
net: $(STAMP)     ## the tests at the doors, in a minute; MEMD_BIN=folder tries the memd installed there
	@$(NET) -m "not full"

net-full: $(STAMP) ## the same with the slower tests
	@$(NET)

test-postgres: $(STAMP)   ## what needs a PostgreSQL: initdb and postgres on PATH, or MEMD_TEAM_TEST_DATABASE=postgresql://…
	@$(BIN)/python -m pytest -n 2 -m "postgres and not crash and not soak" tests/server \
	    tests/soak/test_team_machine.py -rs

check: $(STAMP)   ## format, lint, types, contracts
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo | tail -n 3
	@$(BIN)/python -m pytest tests/house

size: $(STAMP)    ## how large each room is, beside what it may have
	@$(BIN)/python -m tools.sizes

format: $(STAMP)
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

crash: $(STAMP)   ## kill -9 at every state-changing system call (needs strace)
	@$(BIN)/python -m pytest -n auto -m crash tests/crash -rs

soak: $(STAMP)    ## the full number of rounds of what `make test` samples; PART=file or folder
	@$(BIN)/python -m pytest -m soak $(or $(PART),tests) -rs

fuzz: $(STAMP)    ## every door that takes bytes of strangers: MINUTES=5 in all, TARGET=framing alone, KEEP=1 writes the small corpus
	@$(BIN)/pip install -q --disable-pip-version-check "atheris>=3" \
	    || echo "no atheris for this system: by chance, not led by what is reached" >&2
	@$(BIN)/python -m tools.fuzz $(TARGET) \
	    --minutes $(or $(MINUTES),5) $(if $(KEEP),--keep)

OUTSIDE := $(addprefix tests/soak/test_,clocks.py full_disk.py inherited_keys.py \
    late_saves.py leaks.py orphaned_hook.py purge.py sessions.py strangers.py)
soak-outside: $(STAMP) ## what was found from outside, 200 rounds each, as a table
	@$(BIN)/python -m pytest -m soak $(OUTSIDE) -rs

bench: $(STAMP)   ## latency and size, as ratios within one run; PARTS='latency hook dream extract damage first commands scale level rules' SIZES=200,10000 MINUTES=20 PLOT=file.svg
	@$(BIN)/python -m benchmarks $(PARTS) $(if $(SIZES),--sizes $(SIZES)) \
	    $(if $(MINUTES),--minutes $(MINUTES)) $(if $(PLOT),--plot $(PLOT))

bench-load: $(STAMP)   ## 64 clients with mixed calls beside a plain anyio and jsonrpcserver echo: SECONDS=60 of each
	@$(BIN)/python -m benchmarks.load $(if $(SECONDS),--seconds $(SECONDS))

bench-semantic: $(STAMP)   ## what ranking by meaning costs and brings; MODEL=folder DATA=folder
	@$(BIN)/python -m benchmarks.semantic $(MODEL) $(DATA)

bench-recall: $(STAMP)  ## what prefetch finds, beside plain rankers: DATA=folder that holds locomo, MODEL=sentence encoder
	@$(BIN)/python -m benchmarks.recall_quality $(or $(DATA),../shared/corpora) $(MODEL)

bench-team: $(STAMP)    ## what team memory costs, as ratios and bytes: PARTS='pull wire idle load'
	@$(BIN)/python -m benchmarks.team $(PARTS)

bench-notes: $(STAMP)   ## whether session notes are true, and what they cost; PARTS='truth speed'
	@$(BIN)/python -m benchmarks.notes $(PARTS)

bench-counting: $(STAMP) ## how far the estimate of tokens is from a server's count and a tokenizer's
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --upgrade \
	    --target build/counting "anthropic==0.21.3"
	@$(BIN)/python -m benchmarks.counting build/counting/anthropic/tokenizer.json

bench-context: $(STAMP) ## what context services save, and what is known afterwards: SESSIONS=20 or RUN=300 PARTS='none age spill api notes local model'
	@$(BIN)/python -m benchmarks.context $(PARTS) $(if $(SESSIONS),--sessions $(SESSIONS)) \
	    $(if $(RUN),--run $(RUN))

bench-agents: $(STAMP)  ## what messages between agents cost, as ratios: PARTS='send wait stored hook idle prefetch'
	@$(BIN)/python -m benchmarks.agents $(PARTS)

bench-ui: $(STAMP)      ## how quickly the page answers, and what five open pages cost the daemon: SIZES='1000 10000'
	@$(BIN)/python -m benchmarks.page $(SIZES)

bench-extract: $(STAMP) ## what the local extractor keeps of strangers' talk: DATA=folder that holds talk; WRITE=1 trains it anew, KEPT=file gets what was kept
	@$(BIN)/pip install -q --disable-pip-version-check "scikit-learn>=1.5"
	@$(BIN)/python -m benchmarks.train_extractor $(or $(DATA),../shared/corpora) $(if $(WRITE),--write) $(if $(KEPT),--kept $(KEPT))

bench-observing: $(STAMP) ## what counting requests and memctl top cost: PARTS='record top'
	@$(BIN)/python -m benchmarks.observing $(PARTS)

bench-import: $(STAMP)  ## how long an import of many entries takes, for each kind: COUNT=10000 PARTS='mem0 text'
	@$(BIN)/python -m benchmarks.importing $(or $(COUNT),10000) $(PARTS)

bench-instructions: $(STAMP) ## how long instruction files take, first and when nothing has changed: CALLS=200
	@$(BIN)/python -m benchmarks.instruction_views
	@$(BIN)/python -m benchmarks.instructions $(or $(CALLS),200)

bench-said: $(STAMP)    ## what is taken for already said in instruction files, and how fast
	@$(BIN)/python -m benchmarks.already_said

bench-plan: $(STAMP)    ## how long a call of context.plan takes: CALLS=100
	@$(BIN)/python -m benchmarks.plan $(or $(CALLS),100)

bench-keeper: $(STAMP)  ## what the SDK's middleware adds to each request of an agent
	@$(BIN)/python -m benchmarks.keeper

SDKS ?= 2.11.0 2.12.0
sdk: $(STAMP)     ## the tests of the SDK's middleware with versions of the SDK: SDKS='2.11.0 2.12.0'
	@for version in $(SDKS); do \
	    sdk=build/sdk-$$version; \
	    test -d $$sdk || $(BIN)/pip install -q --disable-pip-version-check --target $$sdk anthropic==$$version || exit 1; \
	    PYTHONPATH=$$sdk $(BIN)/python -c 'import anthropic; print("anthropic", anthropic.__version__)'; \
	    PYTHONPATH=$$sdk $(BIN)/python -m pytest -q -n 2 tests/client -k 'keeper or memory_tool' || exit 1; \
	done

e2e: $(STAMP)     ## the real clients that tests/e2e/install.sh brings, and the table of docs/clients.md; MEMD_E2E_PREFIX=folder has them; PART=file ROUNDS=200
	@tests/e2e/install.sh
	@tests/e2e/loopback.sh $(BIN)/python -m pytest -m e2e $(or $(PART),tests/e2e) -rs

docs: $(STAMP)    ## write docs/reference and the manual pages in docs/man from the code
	@$(BIN)/python -m tools.documents

dist: $(STAMP)    ## sdist and wheel of the last commit in dist/, with their SHA-256
	@rm -rf dist
	@$(BIN)/python -m tools.dist dist

dist-check: $(STAMP) ## build both in two clones that differ in all else: the same bytes, each file in its place
	@$(BIN)/python -m tools.dist --check

PYTHONS ?= 3.11 3.12 3.13
PIP := $(BIN)/pip --disable-pip-version-check
packages: dist    ## the wheel with pipx and uv on bare Pythons: PYTHONS='3.11 3.12'; MEMD_PYTHONS=paths, where they are not on PATH
	@$(PIP) wheel --quiet -c constraints.txt -w build/wheels dist/*.whl pip pipx uv
	@for version in $(PYTHONS); do \
	    $(PIP) download --quiet -c constraints.txt -f build/wheels -d build/wheels \
	        --only-binary=:all: --python-version $$version dist/*.whl pip pipx uv || exit 1; \
	done
	@tests/e2e/loopback.sh $(BIN)/python -m pytest -m e2e tests/e2e/test_packages.py -rs

sbom: dist        ## what comes with the wheel and all extras, as CycloneDX beside it, and whether each licence goes with MIT
	@$(BIN)/python -m tools.sbom

clean:
	rm -rf $(VENV) build dist *.egg-info
