"""The suite every night: run, keep, compare with the night before, remember, tell. ``python -m servicepath.nightly --help``.

    night       one run of the suite into a folder of its own
    suite       the suite as the night's child, which does not outlive it for long
    stopping    SIGTERM, SIGHUP, Ctrl-C
    locks       two runs at once: one on this machine, one on the cluster (a Lease, else a file on a node)
    history     the nights in SQLite
    retention   what is kept
    telling     the one line, Prometheus' textfile
    webhook     a chat

    STATE/nights/2026-11-30T020000Z/   report.html, junit.xml, facts.json, comparison.html, baseline.json, recording.tar.zst, pytest.log
    STATE/history.sqlite, history.html, lock

STATE is the folder that --state names.
"""
