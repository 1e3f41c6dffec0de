"""What a folder of loose outputs holds, as far as fixtures must know it to say "not in this recording"."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from ..model.services import ClusterObjects, Service
from ..observation import Observation
from ..recording.model import Recording
from .derive import DERIVED
from .hints import Hints
from .reader import Loose

NOTHING = "not-in-this-recording"
"""Namespace of the Service that stands in where a folder tells of none."""


UNSAID = ipaddress.ip_address("0.0.0.0")  # noqa: S104 - no address to listen on
"""Stands for the ClusterIP of a Service that is known by a drop of its traffic from outside alone."""


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """One folder or sysdump, made ready to be judged.

    Attributes:
        recording: what nodes and agents said, as a recording of the suite's own.
        documents: the API's answers, completed: with derived Services, and empty lists for what is not there.
        resources: the resources that files really hold.
        sliced: Services (``namespace/name``) of which an EndpointSlice is in a file.
        whole: the Service list is one of the whole cluster (it holds default/kubernetes).
        readings: node → time → what was said at that time, by name.
        said: which node the outputs of a node without a name are of is not said: what depends on the node cannot be told.
        loose: the files.
    """

    recording: Recording
    documents: Mapping[str, Any]
    resources: frozenset[str]
    sliced: frozenset[str]
    whole: bool
    readings: Mapping[str, Mapping[int, Mapping[str, Observation]]]
    unnamed: frozenset[str]
    loose: Loose

    @property
    def hints(self) -> Hints:
        """The folder's recording.yaml."""
        return self.loose.hints

    def no_slices(self, service: Service) -> str | None:
        """What is missing where it is not known where the Service's traffic should go; None when it is."""
        return None if service.key in self.sliced else f"EndpointSlices of {service.key}"

    def told(self, objects: ClusterObjects) -> Sequence[str]:
        """The Services that are derived, with what from, a line each."""
        return [f"{s.key}: from {s.annotations[DERIVED]}" for s in objects.services if DERIVED in s.annotations]


def is_derived(service: Service) -> bool:
    """Whether the Service object is put together from what rules and lists say."""
    return DERIVED in service.annotations
