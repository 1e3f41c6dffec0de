"""A comparison as a page: regressions first, then changed facts side by side, then what stayed.

One self-contained file without any server; escaped as the main report is (html.py).
"""

from __future__ import annotations

from pathlib import Path

from servicepath.model.comparison import Comparison, Difference, Standing

from . import comparison_text, files, watch_picture
from .comparison_view import grouped, when
from .html import environment, own_text

_CONFIGURATION = ("cilium-config ", "Helm value ")
_HEAD = ("Cilium", "Kubernetes", "kernel", "kube-proxy's mode", "KubeProxyReplacement", "socket LB", "routing", "tunnel")


def render(found: Comparison) -> str:
    """Return the whole page."""
    changed = [each for each in found.facts if each.standing in (Standing.EXPECTED, Standing.TOLERATED)]
    return environment().get_template("comparison.html.j2").render(
        found=found,
        when=when,
        style=own_text("style.css"),
        more_style=own_text("comparison.css"),
        folding=own_text("folding.js"),
        headline=comparison_text.headline(found),
        outcome={0: "passed", 3: "error", 4: "failed"}[found.exit_status],
        head={name: (found.before.values(name), found.after.values(name)) for name in _HEAD},
        regressions=grouped(found.regressions),
        unseen=found.unseen,
        flips=grouped(each for each in found.conclusions if each.standing in (Standing.EXPECTED, Standing.TOLERATED)),
        changed=grouped(each for each in changed if not _configures(each)),
        configuration=grouped(each for each in changed if _configures(each)),
        stayed=grouped(each for each in found.conclusions if each.standing is Standing.SAME),
        watched=found.watch,
        picture=watch_picture.draw(found.watch) if found.watch else None,
        same=grouped(each for each in found.facts if each.standing is Standing.SAME),
    )


def write(found: Comparison, path: Path) -> None:
    """Write the page whole or not at all."""
    files.write_whole(path, render(found))


def _configures(each: Difference) -> bool:
    return each.name.startswith(_CONFIGURATION)
