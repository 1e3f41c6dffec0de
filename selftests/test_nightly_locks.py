"""Two nights at once: the second waits or says who is at it, and a killed run's lock frees itself."""

import contextlib
import datetime
import email.utils
import json
import os
import re
import signal
import subprocess
import sys
import threading
import types

import pytest

from servicepath.nightly import cluster_lock, locks
from servicepath.nightly import lease as leases
from servicepath.nightly.lease import LeaseLock, NoRight
from servicepath.nightly.locks import HeldByAnother, on_the_cluster, on_this_machine
from servicepath.nightly.node_lock import NodeLock
from servicepath.observation import CouldNotSee, Trouble

HOLD = """
import pathlib, sys
from servicepath.nightly.locks import on_this_machine
with on_this_machine(pathlib.Path(sys.argv[1]), 0):
    print("held", flush=True)
    sys.stdin.read()
"""
HOLD_NODE = """
import sys
sys.path.insert(0, sys.argv[1])
from test_nightly_locks import Here, NodeLock
lock = NodeLock(Here(), "killed", sys.argv[2])
assert lock.take() is None
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def another_process(path):
    """A process that holds the file."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_second_run_on_a_machine_says_who_is_at_it(tmp_path):
    with (
        another_process(tmp_path / "lock") as other,
        pytest.raises(HeldByAnother, match=rf"another run has .*lock: .*@.*, process {other.pid}, since 20"),
        on_this_machine(tmp_path / "lock", 0),
    ):
        pass


def test_the_second_run_on_a_machine_waits_so_long_and_no_longer(tmp_path):
    with another_process(tmp_path / "lock"), pytest.raises(HeldByAnother), on_this_machine(tmp_path / "lock", 0.05):
        pass


def test_a_lock_that_says_something_odd_is_one_line(tmp_path):
    with another_process(tmp_path / "lock"):
        (tmp_path / "lock").write_bytes(b"\xff\x1b[2J\nwho\n" * 99)
        with pytest.raises(HeldByAnother) as wrong, on_this_machine(tmp_path / "lock", 0):
            pass

    assert str(wrong.value).startswith(f"another run has {tmp_path}/lock: \ufffd⟨U+001B⟩[2J who \ufffd")
    assert len(str(wrong.value).splitlines()) == 1


def test_a_killed_runs_file_is_free_at_once(tmp_path):
    with another_process(tmp_path / "lock") as other:
        threading.Timer(0.1, os.kill, (other.pid, signal.SIGKILL)).start()
        with on_this_machine(tmp_path / "lock", 30):
            assert str(os.getpid()) in (tmp_path / "lock").read_text()

    with on_this_machine(tmp_path / "lock", 0):
        pass


class Api:
    """The Leases of an API server of our own, and its clock."""

    def __init__(self):
        self.now = datetime.datetime(2026, 11, 30, 2, 0, tzinfo=datetime.UTC)
        self.lease = None
        self.status = None
        self.version = 0
        self.before_put = None
        self.configuration = types.SimpleNamespace(host="https://10.0.0.1:6443")

    def param_serialize(self, method, path, *, header_params, body, auth_settings):
        """What the client library makes of a request."""
        return method, path, body

    def call_api(self, method, path, body, *, _request_timeout):
        """Send it."""
        status, answer = self.status or self.answer(method, json.loads(json.dumps(body)))
        date = email.utils.format_datetime(self.now, usegmt=True)
        return types.SimpleNamespace(
            status=status, read=lambda: json.dumps(answer).encode(), getheader=lambda name: date if name == "Date" else None
        )

    def answer(self, method, body):
        """HTTP status and document."""
        if method == "GET":
            return (200, self.lease) if self.lease else (404, {"details": {"kind": "leases"}})
        if method == "PUT" and self.lease is None:
            return 404, {"details": {"kind": "leases"}}
        if self.before_put:
            act, self.before_put = self.before_put, None
            act()
        stale = (self.lease is not None) if method == "POST" else body["metadata"].get("resourceVersion") != str(self.version)
        if stale:
            return 409, {"message": "the object has been modified"}
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return 200, self.lease

    def after(self, seconds):
        """Let time pass."""
        self.now += datetime.timedelta(seconds=seconds)


@pytest.fixture
def api():
    return Api()


def test_one_run_has_the_lease_and_the_other_is_told(api):
    first, second = LeaseLock(api, "root@ops1"), LeaseLock(api, "root@ops2")

    assert first.take() is None
    assert second.take() == "root@ops1"
    first.release()
    assert second.take() is None
    second.release()


def test_a_killed_runs_lease_frees_itself(api):
    killed, second = LeaseLock(api, "killed"), LeaseLock(api, "root@ops2")
    killed.take()
    killed._ended.set()  # nobody renews it any more

    api.after(leases.DURATION - 1)
    assert second.take() == "killed"
    api.after(2)
    assert second.take() is None
    killed.release()  # it was not killed after all: what is another's by now stays so
    assert api.lease["spec"]["holderIdentity"] == "root@ops2"
    second.release()


def test_a_lease_is_renewed_while_it_is_held(api):
    renewed = threading.Event()
    lock = LeaseLock(api, "root@ops1", duration=0.03)
    lock.take()
    api.before_put = renewed.set

    assert renewed.wait(30)
    lock.release()


def test_of_two_that_are_as_quick_one_has_it(api):
    first, second = LeaseLock(api, "first"), LeaseLock(api, "second")
    api.before_put = lambda: first.take()

    assert second.take() is not None
    assert api.lease["spec"]["holderIdentity"] == "first"
    first.release()


@pytest.mark.parametrize(("status", "answer"), [(403, {}), (404, {"details": {"kind": "namespaces"}})])
def test_without_the_right_there_is_no_lease(api, status, answer):
    api.status = status, answer

    with pytest.raises(NoRight, match="no Lease in servicepath-test"):
        LeaseLock(api, "root@ops1").take()


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (401, {"message": "Unauthorized"}, "HTTP 401: Unauthorized"),
        (500, {"message": "etcdserver:\nrequest timed out"}, "HTTP 500: etcdserver: request timed out"),
        (422, {"message": "Lease is invalid"}, "HTTP 422: Lease is invalid"),
        (200, "<html>log in first</html>", "HTTP 200: expected a JSON object"),
        (200, {"spec": {"holderIdentity": "x", "renewTime": "yesterday"}}, "has no times that can be read"),
        (200, {"spec": {"holderIdentity": "x", "renewTime": "2026-11-30T02:00:00.000000Z", "leaseDurationSeconds": "1"}}, "no times"),
    ],
)
def test_another_answer_is_told_as_it_is_and_is_no_lock_of_anybody(api, status, answer, said):
    api.status = status, answer

    with pytest.raises(CouldNotSee, match=re.escape(said)) as wrong:
        LeaseLock(api, "root@ops1").take()
    assert not isinstance(wrong.value, NoRight)
    assert "\n" not in wrong.value.trouble.problem


@pytest.mark.parametrize(("unseen", "said"), [(NoRight, ""), (CouldNotSee, "no Lease, locking a node instead: HTTP 500\n")])
def test_without_a_lease_a_node_is_locked_and_why_is_said_where_it_is_no_matter_of_rights(unseen, said, monkeypatch, capsys):
    class Refused:
        def __init__(self, *_):
            pass

        def take(self):
            raise unseen(Trouble("api", "HTTP 500"))

    monkeypatch.setattr(cluster_lock, "LeaseLock", Refused)
    monkeypatch.setattr(cluster_lock.connection, "kube_client", lambda *_: None)
    monkeypatch.setattr(cluster_lock, "_on_a_node", lambda *_: contextlib.nullcontext("the node's"))

    with cluster_lock.held(None, 0) as lock:
        assert lock == "the node's"
    assert capsys.readouterr().err == said


def test_the_fields_mean_what_they_mean_to_every_holder(api):
    first, second = LeaseLock(api, "first"), LeaseLock(api, "second")
    first.take()
    made = dict(api.lease["spec"])
    api.lease["spec"]["strategy"] = "somebody's"
    api.after(7)
    assert first._write({}) is None
    renewed = dict(api.lease["spec"])
    first.release()
    api.after(7)
    second.take()
    taken = dict(api.lease["spec"])
    second.release()

    at = [f"2026-11-30T02:00:{second:02}.000000Z" for second in (0, 7, 14)]
    assert made == {"holderIdentity": "first", "leaseDurationSeconds": leases.DURATION, "acquireTime": at[0], "renewTime": at[0]}
    assert renewed == {**made, "strategy": "somebody's", "renewTime": at[1]}
    assert taken == {**renewed, "holderIdentity": "second", "acquireTime": at[2], "renewTime": at[2], "leaseTransitions": 1}


def lost(lock):
    """What became of a lock whose renewing has come to an end."""
    lock._renewing.join(30)
    assert not lock._renewing.is_alive()
    return lock.lost()


def test_what_is_no_answer_is_asked_again_and_the_lease_is_kept(api):
    asked, renewed = threading.Semaphore(0), threading.Event()
    lock = LeaseLock(api, "root@ops1", duration=3600)
    lock._ended.wait = lambda _: not asked.acquire(timeout=30)  # the pause between two renewals
    lock.take()
    api.status = 200, "<html>"
    asked.release()
    api.before_put = renewed.set
    api.status = None
    asked.release()

    assert renewed.wait(30)
    assert lock.lost() is None
    lock._ended.wait = lambda _: True
    asked.release(2)
    lock.release()
    assert api.lease["spec"]["holderIdentity"] == ""


def test_a_lease_that_could_not_be_renewed_until_it_was_free_is_lost(api):
    lock = LeaseLock(api, "root@ops1", duration=0.05)
    lock.take()
    api.status = 200, "<html>"

    assert lost(lock).startswith("it could not be renewed: the API answered GET /apis/coordination.k8s.io/v1/")
    lock.release()


@pytest.mark.parametrize(
    ("lease", "why"),
    [(None, "it was removed"), ({"metadata": {}, "spec": {"holderIdentity": "root@ops2"}}, "taken by root@ops2")],
)
def test_a_lease_that_is_another_ones_by_now_is_lost_and_left_alone(api, lease, why):
    lock = LeaseLock(api, "root@ops1", duration=0.05)
    lock.take()
    api.lease = lease

    assert lost(lock) == why
    lock.release()
    assert api.lease == lease


def test_the_second_run_on_a_cluster_waits(api):
    first, second = LeaseLock(api, "first"), LeaseLock(api, "second")
    first.take()
    threading.Timer(0.1, first.release).start()

    with on_the_cluster(second, 30, retry=0.02):
        assert api.lease["spec"]["holderIdentity"] == "second"
    assert api.lease["spec"]["holderIdentity"] == ""


def test_or_says_who_is_at_it(api):
    first = LeaseLock(api, "root@ops1, process 7")
    first.take()

    with pytest.raises(HeldByAnother, match="another run is at this cluster: root@ops1, process 7"), on_the_cluster(LeaseLock(api, "x"), 0):
        pass
    first.release()


class Here:
    """A node that is this machine, without root."""

    node = "master"

    def __init__(self, *argv):
        self.argv = argv or ("/bin/sh",)

    def root_shell(self):
        """A shell of this machine."""
        return self.argv

    def by_hand(self):
        """The connection as a person would try it."""
        return "ssh master"


def test_a_file_on_a_node_is_one_runs_at_a_time_and_nothing_is_left(tmp_path):
    file = tmp_path / "it's a lock"
    first, second = NodeLock(Here(), "root@ops1's", str(file)), NodeLock(Here(), "root@ops2", str(file))

    assert first.take() is None
    assert second.take() == "root@ops1's (by master)"
    first.release()
    assert not file.exists()
    assert second.take() is None
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_runs_file_on_a_node_frees_itself(tmp_path):
    file = tmp_path / "lock"
    argv = [sys.executable, "-c", HOLD_NODE, os.path.dirname(__file__), str(file)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    assert NodeLock(Here(), "second", str(file)).take() == "killed (by master)"

    process.kill()
    process.communicate()

    with on_the_cluster(NodeLock(Here(), "second", str(file)), 30, retry=0.02):
        assert file.read_text() == "second\n"


@pytest.mark.parametrize("argv", [("/bin/sh", "-c", "echo no way >&2; exit 255"), ("/bin/sh", "-c", "PATH=/nowhere; exec /bin/sh")])
def test_a_node_without_a_shell_or_flock_has_no_lock(tmp_path, argv):
    with pytest.raises(CouldNotSee, match="no lock on this node"):
        NodeLock(Here(*argv), "root@ops1", str(tmp_path / "lock")).take()


def test_who_we_are_names_machine_and_process():
    assert f"process {os.getpid()}, since " in locks.holder()
