"""The configuration files and manifests of lab/manifests/, filled in from the topology."""

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lab.paths import LAB

FOLDER = LAB / "manifests"


def render(name: str, **values: Any) -> str:
    """Return a template of lab/manifests/ with its values filled in; a value that is not given is an error."""
    # No HTML is made here: what a template says must come out as it stands.
    environment = Environment(loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=False)  # noqa: S701
    return environment.get_template(name).render(**values)
