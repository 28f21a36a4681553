# `make demo` and `make test` need only Python 3.11 (to 3.13) and make; each installs what it needs into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test full explore net net-full test-postgres check check-types check-rules size format crash fuzz soak soak-outside bench bench-load bench-recall bench-extract bench-cost e2e docs dist dist-check packages sbom clean

# A path, not a finder in Python: each of the thousand interpreters that tests start loads that.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --no-compile -c constraints.txt \
	    --config-settings editable_mode=compat -e '.[dev]' \
	    > $(VENV)/install.log 2>&1 || { cat $(VENV)/install.log; exit 1; }
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q -j 0 -x '/(mypy|mypyc)/' $(VENV)/lib \
	    >> $(VENV)/install.log || true
	@touch $@

demo: $(STAMP)    ## the main job on three sample conversations, a team and agents, no key needed
	@$(BIN)/python -m tools.demo

# Bytecode is kept, also where the environment forbids it: without it each worker compiles all tests.
test: $(STAMP)    ## every test that needs only Python; those of the house rules are in `make check`
	@$(BIN)/python -m compileall -q -j 0 memd
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal --ignore=tests/house --ignore=tests/e2e \
	    -m "not crash and not e2e and not full and not soak and not postgres"

full: $(STAMP)    ## the slower tests that have the mark full, also those of make net-full
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 -m full tests -rs

explore: $(STAMP) ## the property tests with new cases, 1,000 each; PART=file or folder
	@MEMD_HYPOTHESIS=explore $(BIN)/python -m pytest -n 2 -m "hypothesis and not soak and not crash and not postgres" $(or $(PART),tests)

NET := $(BIN)/python -m pytest -n 3 tests/net --confcutdir=tests/net -rs
net: $(STAMP)     ## the tests at the doors, in a minute; MEMD_BIN=folder tries the memd installed there
	@$(NET) -m "not full"

net-full: $(STAMP) ## the same with the slower tests
	@$(NET)

test-postgres: $(STAMP)   ## what needs a PostgreSQL: initdb and postgres on PATH, or MEMD_TEAM_TEST_DATABASE=postgresql://…
	@$(BIN)/python -m pytest -n 2 -m "postgres and not crash and not soak" tests/server \
	    tests/soak/test_team_machine.py -rs

check: $(STAMP)   ## format, lint, types, contracts
	@$(MAKE) --no-print-directory -j 2 check-types check-rules

check-types: $(STAMP)
	@$(BIN)/mypy --no-error-summary

check-rules: $(STAMP)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-logo > $(VENV)/contracts.log || { cat $(VENV)/contracts.log; exit 1; }
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest tests/house

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

OUTSIDE := $(addprefix tests/soak/test_,full_disk.py inherited_keys.py \
    late_saves.py leaks.py orphaned_hook.py purge.py sessions.py strangers.py)
soak-outside: $(STAMP) ## what was found from outside, 200 rounds each, as a table
	@$(BIN)/python -m pytest -m soak $(OUTSIDE) -rs

bench: $(STAMP)   ## latency in calls of hello and in bare interpreters: PARTS='calls hook commands' SIZES=200,10000
	@$(BIN)/python -m benchmarks $(PARTS) $(if $(SIZES),--sizes $(SIZES))

bench-load: $(STAMP)   ## 64 clients with mixed calls beside a plain anyio and jsonrpcserver echo: SECONDS=60 of each
	@$(BIN)/python -m benchmarks.load $(if $(SECONDS),--seconds $(SECONDS))

bench-recall: $(STAMP)  ## what prefetch finds, beside plain rankers: DATA=folder that holds locomo and talk
	@$(BIN)/python -m benchmarks.recall $(or $(DATA),../shared/corpora)

bench-extract: $(STAMP) ## what the local extractor keeps of strangers' talk: DATA=folder that holds talk; KEPT=file gets what was kept
	@$(BIN)/python -m benchmarks.extract $(or $(DATA),../shared/corpora) $(if $(KEPT),--kept $(KEPT))

bench-cost: $(STAMP)   ## what a session costs at the default model, by the dollars booked: DATA=folder that holds talk; SESSIONS=20
	@$(BIN)/python -m benchmarks.cost $(or $(DATA),../shared/corpora) $(if $(SESSIONS),--sessions $(SESSIONS))

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
