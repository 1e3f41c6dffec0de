"""Wiring only: the plug-ins in the order in which the data flows. See fixtures/__init__.py for what each step does."""

pytest_plugins = [
    "fixtures.recorded",
    "fixtures.inventory",
    "fixtures.connect",
    "fixtures.observe",
    "fixtures.selected",
    "fixtures.facts",
    "fixtures.rule_facts",
    "fixtures.host_facts",
    "fixtures.dataplanes",
    "fixtures.setup",
    "fixtures.traffic",
    "fixtures.flows",
    "fixtures.counted",
    "fixtures.paths",
    "fixtures.disruption",
    "fixtures.known",
    "fixtures.meaning",
    "fixtures.evidence",
    "fixtures.report",
    "fixtures.baseline",
]
