"""Wiring only: the plug-ins in the order in which the data flows. See fixtures/__init__.py for what each step does."""

pytest_plugins = [
    "fixtures.inventory",
    "fixtures.connect",
    "fixtures.observe",
    "fixtures.traffic",
    "fixtures.facts",
    "fixtures.flows",
    "fixtures.report",
]
