# Targets are listed by `make` alone; the text behind ## is what it shows.
SHELL := /bin/bash
# Compiled modules are kept: without them every run compiles the suite anew.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# After pytest: what sudo made in this folder belongs to whoever called it; the exit status stays pytest's.
GIVE_BACK = status=$$?; [ -z "$$SUDO_UID" ] || chown -hR --from=root "$$SUDO_UID:$$SUDO_GID" .; exit $$status

.PHONY: browser number help check test upgrades doctor bench faults soak lint lab-up lab-down packages clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

check: packages $(VENV)/.ready ## a real cluster on this machine, and every conclusion asserted on it (root)
	@$(PY) -m lab up
	@echo "the lab stays up after this; to remove it: make lab-down"
	@$(PY) -m pytest --disruptive; $(GIVE_BACK)

test: browser $(VENV)/.ready ## the project's own tests: offline, and on the lab (root)
	@$(PY) -m pytest selftests; $(GIVE_BACK)

upgrades: browser $(VENV)/.ready ## change the lab for real (Cilium's version, set-ups, a reboot), each under watch and compared (root)
	@$(PY) -m pytest selftests/lab/upgrades.py -v

doctor: $(VENV)/.ready ## can this machine see your cluster? one line a check, with a remedy
	@$(PY) -m servicepath.doctor $(ARGS)

bench: packages $(VENV)/.ready ## measure what the README claims: the lab's and the suite's speed (root)
	@$(PY) -m bench

faults: packages $(VENV)/.ready ## break the lab on purpose, fault by fault, and see each conclusion turn red (root); NAMES="…" for a few
	@sh lab/packages.sh libfaketime
	@$(PY) -m lab up
	@$(PY) -m lab fault check $(NAMES)

soak: number packages $(VENV)/.ready ## N=100 healthy runs in a row under foreign load: nothing red, nothing that grows (root)
	@$(PY) -m lab up
	@$(PY) -m lab soak $(or $(N),100)

lint: $(VENV)/.ready ## ruff and mypy --strict
	@$(VENV)/bin/ruff check . && $(VENV)/bin/mypy

lab-up: packages $(VENV)/.ready ## start the lab (root); the first time it builds Kubernetes and Cilium
	@$(PY) -m lab up

lab-down: $(VENV)/.ready ## remove the lab and all that it made but its cache
	@$(PY) -m lab down

# Before a lab is built for it.
number:
	@[ "$(or $(N),100)" -ge 1 ] 2>/dev/null || { echo "N: expected a whole number of at least 1" >&2; exit 2; }

browser:
	@sh lab/packages.sh chromium

packages:
	@sh lab/packages.sh

$(VENV)/.ready: requirements.txt requirements-dev.txt
	@echo "making $(VENV) (Python 3.11 or later)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

clean: ## remove what was made in this folder (not the lab, not its cache)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find reports -mindepth 1 ! -name .gitkeep -delete
