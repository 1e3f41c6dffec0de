"""Wiring only: the plug-ins in the order in which the data flows. See fixtures/__init__.py for what each step does."""

pytest_plugins = [
    "fixtures.inventory",
    "fixtures.connect",
    "fixtures.observe",
    "fixtures.traffic",
    "fixtures.disruption",
    "fixtures.selected",
    "fixtures.setup",
    "fixtures.facts",
    "fixtures.host_facts",
    "fixtures.dataplanes",
    "fixtures.flows",
    "fixtures.evidence",
    "fixtures.report",
]
