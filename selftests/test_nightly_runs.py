"""A night that comes to no end of its own: by --limit, by a signal, by SIGKILL. What was changed is undone, and the report is kept."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import types

import at_a_terminal
import pytest
from test_nightly_locks import Here

from servicepath.nightly import __main__ as command
from servicepath.nightly import cluster_lock, locks
from servicepath.nightly import night as nights
from servicepath.nightly.locks import HeldByAnother, on_the_cluster, on_this_machine
from servicepath.nightly.night import Night
from servicepath.nightly.node_lock import NodeLock
from servicepath.nightly.stopping import Stop, Stopped, noticed
from servicepath.nightly.suite import ORPHANED

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORT = {"report.html", "junit.xml", "facts.json", "baseline.json", "pytest.log"}
# One conclusion holds; the other changes something, says so, waits for a signal, and undoes it once somebody looks.
SUITE = """
import os, pathlib, threading

HERE = pathlib.Path(__file__).parent

def test_holds():
    \"\"\"It holds.\"\"\"
    assert True

def test_disturbs():
    \"\"\"It disturbs.\"\"\"
    try:
        (HERE / "changed").write_text("")
        (HERE / "begun").write_text(str(os.getpid()))
        while True:
            threading.Event().wait(0.05)
    finally:
        (HERE / "undoing").write_text("now")
        (HERE / "changed").unlink()
        (HERE / "undone").write_text("done")
"""


@pytest.fixture
def folder(tmp_path):
    """A suite of its own, the inventory of a cluster that is not there, and pipes on which the suite says how far it is."""
    (tmp_path / "test_odd.py").write_text(SUITE)
    (tmp_path / "inventory.yaml").write_text("kubeconfig: nowhere.yaml\nnodes: {master: {host: 127.0.0.1}}\nssh: {port: 1}\n")
    (tmp_path / "state" / "nights").mkdir(parents=True)
    for name in ("begun", "undoing", "undone"):
        os.mkfifo(tmp_path / name)
    return tmp_path


def arguments(folder):
    """What pytest is told, so that it runs that suite with this project's plug-ins."""
    own = ["-p", "conftest", f"--rootdir={ROOT}", "-c", f"{ROOT}/pytest.ini"]
    return [*own, f"--inventory={folder}/inventory.yaml", str(folder / "test_odd.py")]


@contextlib.contextmanager
def nightly(folder):
    """The command as a process, with its suite at the point at which something is changed; and the suite's number."""
    own = [f"--state={folder}/state", f"--inventory={folder}/inventory.yaml", "--no-record"]
    argv = [sys.executable, "-m", "servicepath.nightly", *own, "--", *arguments(folder)]
    process = subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=at_a_terminal.signals
    )  # fmt: skip
    suite = None
    try:
        suite = int((folder / "begun").read_text())
        yield process, suite
    finally:
        for number in (process.pid, suite or process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.communicate()


def undone(folder):
    """Let the suite undo what it changed."""
    assert (folder / "undoing").read_text() == "now"
    assert (folder / "undone").read_text() == "done"
    assert not (folder / "changed").exists()


def kept(folder):
    (night,) = (folder / "state" / "nights").iterdir()
    return {path.name for path in night.iterdir()}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_night_that_is_stopped_undoes_reports_and_says_so_in_one_line(folder, number):
    with nightly(folder) as (process, _):
        os.killpg(process.pid, number)
        undone(folder)
        out, err = process.communicate()

    assert process.returncode == 3
    assert out.count("\n") == 1
    assert f": could not be seen: stopped by {number.name}; 1 of 2 tests were judged; the first night" in out
    assert err.splitlines()[-1] == f"stopped by {number.name}: this night is not whole"
    assert "Traceback" not in err
    assert kept(folder) >= REPORT
    assert (folder / "state" / "history.html").exists()


def test_more_signals_break_off_nothing_of_what_the_first_one_began(folder):
    with nightly(folder) as (process, suite):
        process.terminate()
        assert (folder / "undoing").read_text() == "now"
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(process.pid, number)
            os.kill(suite, number)
        assert (folder / "undone").read_text() == "done"
        _, err = process.communicate()

    assert process.returncode == 3
    assert "Traceback" not in err
    assert kept(folder) >= REPORT


def test_the_suite_of_a_killed_night_undoes_and_reports_and_has_the_lock_until_then(folder):
    with nightly(folder) as (process, suite):
        process.kill()
        process.communicate()
        with pytest.raises(HeldByAnother, match=f"process {process.pid}"), on_this_machine(folder / "state" / "lock", 0):
            pass
        undone(folder)
        with on_this_machine(folder / "state" / "lock", 60):
            assert not alive(suite)

    assert kept(folder) >= REPORT


def alive(number):
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_suite_that_its_night_leaves_behind_ends_whatever_it_does(folder):
    theirs, ours = os.pipe()
    code = f"import sys; from servicepath.nightly import suite; suite.ORPHANED = 0.1; sys.exit(suite.main({theirs}, sys.argv[1:]))"
    with open(ours, "wb"):
        argv = [sys.executable, "-c", code, f"--reports={folder}/reports", *arguments(folder)]
        process = subprocess.Popen(argv, cwd=ROOT, pass_fds=(theirs,), stdout=subprocess.DEVNULL)
        os.close(theirs)
        (folder / "begun").read_text()

    assert process.wait() == -signal.SIGKILL


def test_the_lease_of_a_night_that_is_gone_is_valid_for_longer_than_its_suite_lives():
    from servicepath.nightly.lease import DURATION

    assert ORPHANED < DURATION * 2 / 3


class TimeIsUp(Stop):
    """--limit is over just when the suite has changed something; or, with a signal, somebody stops the night."""

    def __init__(self, folder, asked=None):
        super().__init__()
        self.folder, self.asked = folder, asked

    @contextlib.contextmanager
    def raising(self):
        """As Stop.raising."""
        (self.folder / "begun").read_text()
        raise Stopped(self.asked) if self.asked else subprocess.TimeoutExpired("suite", 600)
        yield


def test_a_night_that_takes_too_long_undoes_and_reports(folder):
    reader = threading.Thread(target=undone, args=(folder,))
    reader.start()
    one = nights.run(folder / "state" / "nights", arguments(folder), record=False, limit=600, stop=TimeIsUp(folder))
    reader.join()

    assert one.run.unfinished == "ended after 600 s (--limit); 1 of 2 tests were judged"
    assert kept(folder) >= REPORT


def test_a_suite_that_does_not_end_is_ended_and_the_night_says_why(folder, monkeypatch):
    monkeypatch.setattr(nights, "GRACE", 0.1)
    stop = TimeIsUp(folder, "SIGTERM")  # nobody looks at its undoing, so it goes on and on
    one = nights.run(folder / "state" / "nights", arguments(folder), record=False, limit=600, stop=stop)

    assert one.run.unfinished == "stopped by SIGTERM"
    assert kept(folder) >= {"baseline.json", "pytest.log"}


@pytest.fixture
def terminal():
    """This process hears what ends a run, whatever its parent ignored."""
    with at_a_terminal.heard():
        yield


@pytest.mark.usefixtures("terminal")
def test_a_signal_before_the_night_is_one_line(monkeypatch, capsys, tmp_path):
    @contextlib.contextmanager
    def waiting(path, wait):
        signal.raise_signal(signal.SIGTERM)
        yield

    monkeypatch.setattr(locks, "on_this_machine", waiting)

    assert command.main([f"--state={tmp_path}", "--", "--replay=x"]) == 3
    assert capsys.readouterr().err == "stopped by SIGTERM before the night began\n"


@pytest.mark.usefixtures("terminal")
def test_a_signal_that_came_before_the_wait_ends_it_too_and_one_that_is_ignored_stays_so():
    with noticed() as stop:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped, match="SIGTERM"), stop.raising():
            pass
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with noticed() as stop, stop.raising():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, earlier)

    assert stop.asked is None


class Stub:
    """A lock of the cluster."""

    def __init__(self, who=None, lost=None):
        self.who, self.why, self.released = who, lost, False

    def take(self):
        """Have it, or be stopped while somebody else has it."""
        if self.who:
            raise Stopped("SIGTERM")

    def release(self):
        """Give it back."""
        self.released = True

    def descriptors(self):
        """None."""
        return ()

    def lost(self):
        """What became of it."""
        return self.why


def test_what_a_take_that_is_broken_off_may_have_taken_is_given_back():
    lock = Stub(who="root@ops1")
    with pytest.raises(Stopped), on_the_cluster(lock, 60):
        pass

    assert lock.released


@pytest.fixture
def asked(monkeypatch, folder):
    """What a night of this command line tells pytest, and what it says on standard error."""

    def told(*said, lost=None):
        words = []

        def run(_folder, arguments, **_):
            words.extend(arguments)
            empty = types.SimpleNamespace(folder=folder)
            raise OSError(2, "no run here", str(empty.folder))

        monkeypatch.setattr(nights, "run", run)
        monkeypatch.setattr(cluster_lock, "held", lambda found, wait: contextlib.nullcontext(Stub(lost=lost)))
        assert command.main([f"--state={folder}/state", f"--inventory={folder}/inventory.yaml", *said]) == 3
        return [word for word in words if word.startswith("--deadline")]

    return told


def test_the_suites_own_deadline_comes_before_the_limit(asked, folder):
    assert asked() == ["--deadline=600"]  # the inventory's
    assert asked("--limit=100") == ["--deadline=90"]
    assert asked("--limit=100", "--", "--deadline=50") == ["--deadline=90", "--deadline=50"]


def test_a_lock_that_was_lost_meanwhile_is_told(monkeypatch, folder, capsys):
    from comparison_sample import baseline

    monkeypatch.setattr(nights, "run", lambda folder, *_, **__: Night(folder, baseline(), 1.0))
    monkeypatch.setattr(cluster_lock, "held", lambda found, wait: contextlib.nullcontext(Stub(lost="taken by root@ops2")))

    assert command.main([f"--state={folder}/state", f"--inventory={folder}/inventory.yaml"]) == 0
    assert capsys.readouterr().err == (
        "the lock on the cluster was lost during the run, another run may have disturbed it: taken by root@ops2\n"
    )


HOLD_NODE = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from test_nightly_locks import Here, NodeLock
lock = NodeLock(Here(), "killed", sys.argv[2])
assert lock.take() is None
suite = subprocess.Popen(["cat", sys.argv[3]], pass_fds=lock.descriptors(), start_new_session=True, stdin=-3, stdout=-3)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_nights_file_on_a_node_is_not_free_while_its_suite_goes_on(tmp_path):
    file, pipe = tmp_path / "lock", tmp_path / "pipe"
    os.mkfifo(pipe)
    argv = [sys.executable, "-c", HOLD_NODE, os.path.dirname(__file__), str(file), str(pipe)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "held\n"
    with pipe.open("w"):  # the suite goes on as long as this is open
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert NodeLock(Here(), "second", str(file)).take() == "killed (by master)"

    with on_the_cluster(NodeLock(Here(), "second", str(file)), 60, retry=0.02):
        assert file.read_text() == "second\n"


def test_a_shell_on_a_node_that_ended_by_itself_is_a_lock_that_was_lost(tmp_path):
    lock = NodeLock(Here(), "root@ops1", str(tmp_path / "lock"))
    assert lock.take() is None
    assert lock.lost() is None
    os.killpg(lock._shell.pid, signal.SIGKILL)
    lock._shell.wait()

    assert lock.lost() == "the connection to master, which held it, is gone"
    lock.release()
