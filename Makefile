# make run     install, and start the service on http://localhost:8000
# make install   install only, into .venv
# make test    install, and run what a change can break, in a browser too; ten minutes on two cores
# make quick   run the tests that start no service; under 2 minutes
# make soak    run the long tests: kills, sick GPUs, strange load, attackers, 2 GiB, ten hours; an hour
# make check   format, lint, types, import rules
# make page    bundle the page's modules and styles anew, after a change of them
# make vendor  bundle the page's packages anew, after a change of package.json
# make bench   run the benchmarks on this machine
# make dist    build the source archive and the wheel, with their checksums, in dist/
# make sbom    write the bill of materials, dist/sbom.json: what is installed for the product
# make audit   look the installed packages up in PyPI's database of vulnerabilities
# make screenshots   take the pictures of the page in docs/images again, with the machine's Chromium
# make clean   remove all generated files
#
# Variables: PYTHON (3.11 to 3.13; another one makes .venv anew; default: that of .venv, else python3), EXTRAS (gpu: cuBLAS 12 for CTranslate2, the default
# if there is an NVIDIA driver; more are added to what is installed), TORCH_INDEX: the package index for torch. It embeds voices, on the CPU, and the package of the speech
# detector needs it, so the default is the index of PyTorch's CPU builds, about 200 MB. A wheel that pip finds locally (PIP_FIND_LINKS)
# takes precedence. `TORCH_INDEX=` uses pip's own index.
PYTHON ?= $(or $(lastword $(patsubst python=%,%,$(filter python=%,$(INSTALLED)))),python3)
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
EXTRAS ?= $(if $(shell command -v nvidia-smi),gpu)

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt

# Node 20.11 or later with npm, which the page's types, format and tests need: the machine's, or the one of a package.
NO_NODE := $(shell command -v npm >/dev/null \
	&& node -e 'const [a, b] = process.versions.node.split("."); process.exit(a * 100 + +b < 2011 ? 1 : 0)' 2>/dev/null \
	|| echo no)
comma := ,

# .venv/.installed holds the words that name what was installed: the Python and the extras.
WORDS := python=$(PYTHON) $(subst $(comma), ,$(EXTRAS))
INSTALLED := $(shell cat .venv/.installed 2>/dev/null)
# A default does not count as another Python.
OTHER_PYTHON := $(if $(filter-out file,$(origin PYTHON)),$(if $(INSTALLED),$(filter-out $(INSTALLED),python=$(PYTHON))))
MISSING := $(OTHER_PYTHON) $(filter-out $(INSTALLED) python=%,$(WORDS))
WITH_NODE := PATH="$(CURDIR)/$(BIN):$$PATH"

.PHONY: install run test quick soak check page vendor bench dist sbom audit screenshots clean

install: .venv/.installed

run: .venv/.installed
	WHISPER_DEMO_FALLBACK=$${WHISPER_DEMO_FALLBACK:-1} $(BIN)/whisperfleet serve

# Some at a time, by file, the longest first: the tests of a file share a server. Four for two cores: they wait half of
# the time; three for the quick ones. Each server that a test starts would compile the application anew. A test that
# fails is run once more: a machine may be busy for a moment. The last lines name it.
PYTEST := $(BIN)/pytest --numprocesses 4

test quick soak: export PYTHONDONTWRITEBYTECODE =
test: .venv/.dev node_modules/.installed
	$(PYTEST) --reruns 1

quick: .venv/.dev node_modules/.installed
	$(PYTEST) --numprocesses 3 -m 'not server and not soak'

soak: .venv/.dev
	$(BIN)/pytest -m soak -rP
	$(BIN)/python -m bench.endurance

check: .venv/.dev node_modules/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(WITH_NODE) node_modules/.bin/tsc
	$(WITH_NODE) node_modules/.bin/biome check

page: node_modules/.installed
	$(WITH_NODE) node vendor/page.mjs

vendor: node_modules/.installed
	$(WITH_NODE) node vendor/bundle.mjs
	$(MAKE) page

screenshots: .venv/.dev
	$(BIN)/python -m tests.browser.screenshots

bench: .venv/.dev
	$(BIN)/python bench/quality.py tests/data
	$(BIN)/whisperfleet bench
	$(BIN)/python -m bench.latency

# The wheel is built from the source archive, in a folder of pip's own: nothing left over in this tree gets into it.
dist: .venv/.installed
	rm -rf dist whisperfleet.egg-info
	$(BIN)/python -c "from setuptools import build_meta; build_meta.build_sdist('dist')" > /dev/null
	$(PIP) wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir dist dist/whisperfleet-*.tar.gz
	cd dist && sha256sum whisperfleet-* > SHA256SUMS && cat SHA256SUMS

sbom: .venv/.installed .venv/release/.installed
	.venv/release/bin/python release/sbom.py .venv dist/sbom.json "$(EXTRAS)"

audit: .venv/.installed .venv/release/.installed
	.venv/release/bin/python release/audit.py .venv "$(EXTRAS)"

clean:
	rm -rf .venv node_modules build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

.venv/.installed: pyproject.toml constraints.txt $(if $(strip $(MISSING)),another-installation)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	echo "whisperfleet needs Python 3.11 to 3.13, and $(PYTHON) is not one of them. Install one and name it:" \
	"make $(firstword $(MAKECMDGOALS) install) PYTHON=python3.12 (docs/install.md#platforms)" >&2; exit 1; }
	$(PYTHON) -m venv $(if $(OTHER_PYTHON),--clear) .venv
	$(INSTALL) --no-index --no-deps torch 2>/dev/null \
	|| $(INSTALL) --no-deps $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	$(INSTALL) --editable .$(if $(EXTRAS),[$(EXTRAS)])
	$(INSTALL) --no-deps resemblyzer  # for its weights; its own dependencies need a compiler
	@echo $(sort $(WORDS) $(if $(OTHER_PYTHON),,$(INSTALLED))) > $@

.PHONY: another-installation
another-installation:

.venv/.dev: .venv/.installed
	$(INSTALL) --editable .[dev$(if $(NO_NODE),$(comma)node)]
	touch $@

# Apart from the product, whose packages they list.
.venv/release/.installed: release/requirements.txt | .venv/.installed
	$(BIN)/python -m venv --clear --without-pip .venv/release
	$(PIP) --python .venv/release/bin/python install --quiet --no-deps --requirement release/requirements.txt
	touch $@

node_modules/.installed: package.json package-lock.json | .venv/.dev
	$(WITH_NODE) npm ci --no-audit --no-fund --loglevel error
	touch $@
