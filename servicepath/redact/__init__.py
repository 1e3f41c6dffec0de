"""A recording with neutral names and addresses, which gives the same verdicts.

    pytest --record=OUT --redact            while it is made
    python -m servicepath.redact IN OUT     one that is there

Everything is mapped twice over: a first pass sees which names and networks there are, the second one writes the new ones. One Mapping
serves all files, so that what was equal stays equal. docs/recordings.md says what is mapped, what is dropped and what stays.

    prefixes    bits → bits, so that two numbers share as many leading bits as before
    addresses   IPv4, IPv6, networks and MAC addresses by it
    names       nodes, Pods, namespaces, Services and what else bears a name → neutral ones in the same order
    chains      the hashes that kube-proxy makes of names and addresses
    mapping     all of them together
    texts       what tools print
    rules       what iptables-save and nft print
    objects     the API's answers
    dns         DNS messages and questions, byte for byte of the same length
    packets     captures
    probes      what was sent, and what came back
    recording   a whole recording
"""
