"""A run's baseline as one JSON document; parse/baseline.py reads it, and has a sample."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

from servicepath.model.baseline import Baseline, Fact, Identity, Judged, Span, Timing
from servicepath.model.results import RunSummary
from servicepath.parse.baseline import KIND, SCHEMA

from . import files


def of_run(
    summary: RunSummary, identity: Identity | None, options: Iterable[str], facts: Iterable[Fact], timings: Iterable[Timing],
    during: Span | None,
) -> Baseline:  # fmt: skip
    """The run as a baseline; of facts that were told twice (asked again) the last counts."""
    told = {fact.key: fact for fact in facts}
    judged = tuple(Judged(v.conclusion, v.sentence, v.group, v.case, v.outcome, v.message) for v in summary.verdicts)
    return Baseline(
        started=summary.started,
        identity=identity,
        options=tuple(options),
        facts=tuple(told[key] for key in sorted(told)),
        judged=judged,
        timings=tuple(timings),
        unfinished=summary.unfinished,
        during=during,
    )


def as_text(baseline: Baseline) -> str:
    """The document; ASCII only, so that bytes which were no UTF-8 (lone surrogates) survive as escapes."""
    return json.dumps({"kind": KIND, "schema": SCHEMA, **dataclasses.asdict(baseline)}, indent=1) + "\n"


def write(baseline: Baseline, path: Path) -> None:
    """Write it whole or not at all."""
    files.write_whole(path, as_text(baseline))
