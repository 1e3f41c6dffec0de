"""What a run saw, kept so that it can be judged again without the cluster: one folder of plain files, or the same packed (.tar.zst).

    recording.yaml                       what it is: schema, when and where it was made, tools, options, inventory (no credentials)
    nodes/NODE/ROUND/NAME.out .err .json one command's standard output, standard error (if any), and argv, status and times
    nodes/NODE/ROUND/_round.json         the order of the commands, and what the round trip cost
    nodes/NODE/ROUND/_plan.json          what was sent: the probes, and where was captured
    nodes/NODE/ROUND/_trouble.json       instead of the commands: why nothing could be seen
    agents/NODE/ROUND/…                  the same of the node's Cilium agent
    api/ROUND/NAME.out .err .json        one answer of the API; NAME.trouble.json: why there was none
    clock.json                           the readings of the clock that decided something

ROUND is the phase of the run and a running number: ``snapshot-1``, ``traffic-2`` (the second attempt), ``service-created-7``.

    codec       Recording ↔ these files, by name and bytes; pure
    storage     the files ↔ a folder or a .tar.zst
    head        recording.yaml
    plans       NodePlan ↔ JSON
    recorder    a run's observations → the files, as they come
    replay      a Recording in place of nodes, API, agents and clock
    redact      neutral names and addresses
"""
