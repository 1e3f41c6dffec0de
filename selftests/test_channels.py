"""Channels over ssh and to this machine, and the fleet: with a fake ssh, so nothing leaves this machine."""

from __future__ import annotations

import io
import logging
import os
import pathlib
import shlex
import threading
import time

import fake_ssh
import pytest

from servicepath import troubles
from servicepath.channel import Command
from servicepath.channels.local import LocalChannel
from servicepath.channels.ssh import SocketFolder, SshChannel, SshLogin
from servicepath.deadline import Deadline
from servicepath.fleet import Fleet
from servicepath.observation import Archive, CouldNotSee, Trouble

HELLO = (Command("hello", ("echo", "hello")),)


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    fake = fake_ssh.FakeSsh(tmp_path)
    monkeypatch.setenv("PATH", fake_ssh.on_path(tmp_path))
    return fake


@pytest.fixture
def sockets():
    folder = SocketFolder()
    yield folder
    folder.remove()


def unseen(channel, timeout=10.0):
    with pytest.raises(CouldNotSee) as raised:
        channel.run(HELLO, timeout=timeout, phase="test")
    return raised.value.trouble


def test_a_batch_is_one_ssh_with_host_keys_checked_and_no_question(ssh, sockets):
    channel = SshChannel("worker1", "box", SshLogin(), sockets)

    said = channel.run([*HELLO, Command("who", ("id", "-u"))], timeout=10, phase="snapshot")

    assert said["hello"].stdout == b"hello\n"
    assert (channel.round_trips, len(ssh.calls())) == (1, 1)
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ServerAliveInterval=5", "ControlMaster=auto", "ConnectTimeout=10"):
        assert f"-o {option} " in ssh.calls()[0]


def test_the_script_never_shows_in_a_process_list(ssh, sockets):
    SshChannel("worker1", "box", SshLogin(), sockets).run([Command("a", ("echo", "sesame"))], timeout=10, phase="p")

    assert "sesame" not in ssh.calls()[0]


def test_a_batch_may_be_longer_than_an_argument(ssh, sockets):
    data = b"x" * 300_000

    said = SshChannel("worker1", "box", SshLogin(), sockets).run([Command("cat", ("cat",), stdin=data)], timeout=20, phase="p")

    assert said["cat"].stdout == data


@pytest.mark.parametrize(
    ("host", "login", "words"),
    [
        ("box", SshLogin(), ["box"]),
        ("box", SshLogin(user="me", port=2222), ["-o", "User=me", "-o", "Port=2222"]),
        ("fd00::a", SshLogin(user="me", port=22), ["-o", "User=me", "-o", "Port=22"]),
        ("box", SshLogin(config=pathlib.Path("/a b/config"), identity=pathlib.Path("/k")), ["-F", "/a b/config", "-i", "/k"]),
    ],
)
def test_the_login_is_what_the_inventory_says(ssh, sockets, host, login, words):
    argv = SshChannel("n", host, login, sockets).backend.argv("true")

    assert argv[-2:] == [host, "true"]
    assert " ".join(words) in " ".join(argv)
    assert ("-F" in argv) == (login.config is not None)


def test_sockets_have_a_short_path_even_where_temporary_files_have_a_long_one(monkeypatch, tmp_path):
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))

    folder = SocketFolder()

    assert len(str(folder.new())) + 18 <= 104
    assert folder.path.stat().st_mode & 0o077 == 0
    folder.remove()
    assert not folder.path.exists()


def test_the_folder_of_a_run_that_was_killed_is_removed_by_a_later_one(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone, alive = 2**22 + 1, os.getpid()  # no process has a number that high (kernel.pid_max)
    old = {name: tmp_path / name for name in (f"sp-{gone}-aaaaaaaa", f"sp-{alive}-bbbbbbbb", "sp-mine-cccccccc", f"other-{gone}-dddd")}
    young = tmp_path / f"sp-{gone}-eeeeeeee"
    for folder in (*old.values(), young):
        folder.mkdir()
    for folder in old.values():
        os.utime(folder, (0, 0))

    SocketFolder().remove()

    assert sorted(tmp_path.iterdir()) == sorted([*list(old.values())[1:], young])


def test_closing_tells_the_master_to_exit(ssh, sockets):
    channel = SshChannel("worker1", "box", SshLogin(), sockets)
    channel.run(HELLO, timeout=10, phase="p")

    channel.close()
    channel.close()

    assert [line.endswith("-O exit box") for line in ssh.calls()] == [False, True]


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("ssh: connect to host box port 22: Connection refused", "refused", "is sshd running"),
        ("ssh: connect to host box port 22: Connection timed out", "timed out", "firewall"),
        ("ssh: Could not resolve hostname box: Name or service not known", "does not resolve", "nodes.worker1.host"),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "not the one in", "ssh-keygen -R box"),
        ("No ED25519 host key is known for box and you have requested strict checking.", "not in known_hosts", "ssh box once"),
        ("me@box: Permission denied (publickey).", "permission denied", "authorized_keys"),
        ("sudo: a password is required", "sudo refused: a password", "NOPASSWD: /bin/sh"),
        ("Sorry, user me is not allowed to execute '/bin/sh' as root on box.", "sudo refused: the user", "NOPASSWD: /bin/sh"),
        ("/bin/sh: 1: exec: sudo: not found", "sudo is not there", "package sudo"),
        ("kex_exchange_identification: read: Connection reset by peer", "closed", "sshd's log"),
        ("Bad owner or permissions on /home/me/.ssh/config", "configuration file", "correct the file"),
    ],
)
def test_a_failed_connection_names_cause_command_output_and_remedy(ssh, sockets, text, problem, remedy):
    ssh.behave(f"echo {shlex.quote(text)} >&2; exit 255")

    trouble = unseen(SshChannel("worker1", "box", SshLogin(user="me"), sockets))

    assert trouble.node == "worker1"
    assert problem in trouble.problem
    assert remedy in trouble.remedy
    assert trouble.command == "ssh -l me box 'sudo -n /bin/sh -c id'"
    assert text.splitlines()[0] in trouble.output


def test_output_that_is_cut_off_is_no_answer(ssh, sockets):
    ssh.behave('sh -c "$last" | head -c 60; exit 255')

    trouble = unseen(SshChannel("worker1", "box", SshLogin(), sockets))

    assert "cut off after 60 bytes" in trouble.problem


def test_a_commands_own_connection_refused_is_not_taken_for_sshs(ssh, sockets):
    channel = SshChannel("worker1", "box", SshLogin(), sockets)
    talk = Command("a", ("sh", "-c", "echo 'connect: Connection refused' >&2; kill -9 $(ps -o ppid= -p $PPID)"))

    with pytest.raises(CouldNotSee) as raised:
        channel.run([talk], timeout=10, phase="p")

    assert "refused" not in raised.value.trouble.problem


def test_a_hung_ssh_is_killed(ssh, sockets):
    ssh.behave("sleep 60 & wait")
    began = time.monotonic()

    trouble = unseen(SshChannel("worker1", "box", SshLogin(), sockets), timeout=0.5)

    assert time.monotonic() - began < 5
    assert "no answer within" in trouble.problem


def test_a_hung_command_is_named(ssh, sockets):
    channel = SshChannel("worker1", "box", SshLogin(), sockets)

    with pytest.raises(CouldNotSee) as raised:
        channel.run([*HELLO, Command("slow", ("sleep", "50"), timeout=60)], timeout=1, phase="p")

    assert raised.value.trouble.problem == "no answer within 1 s, in: sleep 50"


def test_an_ssh_that_leaves_a_master_with_its_standard_error_does_not_hang(ssh, sockets):
    ssh.behave("sleep 20 >/dev/null </dev/null & echo $! >&2")
    began = time.monotonic()

    SshChannel("worker1", "box", SshLogin(), sockets).run(HELLO, timeout=10, phase="p")

    assert time.monotonic() - began < 5


def test_no_more_than_eight_sessions_at_a_time(ssh, sockets, tmp_path):
    now = tmp_path / "now"
    now.mkdir()
    ssh.behave(f": >{now}/$$; ls {now} | wc -l >>{tmp_path}/counts; sleep 0.3; rm {now}/$$")
    channel = SshChannel("worker1", "box", SshLogin(), sockets)
    threads = [threading.Thread(target=channel.run, args=(HELLO,), kwargs={"timeout": 20, "phase": "p"}) for _ in range(12)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max(int(line) for line in (tmp_path / "counts").read_text().split()) <= 8
    assert channel.round_trips == 12


def test_nothing_that_a_node_says_is_logged(ssh, sockets, monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(logging.root, "handlers", [logging.StreamHandler(written)])
    monkeypatch.setattr(logging.root, "level", logging.DEBUG)

    SshChannel("worker1", "box", SshLogin(), sockets).run([Command("a", ("echo", "sesame"))], timeout=10, phase="p")
    logging.getLogger("testinfra").debug("control: what is logged is seen")

    assert "control" in written.getvalue()
    assert "sesame" not in written.getvalue()


def test_testinfra_can_use_the_backends_too(ssh, sockets):
    ours = SshChannel("worker1", "box", SshLogin(), sockets).backend

    said = ours.run("echo %s", "it's")

    assert (said.rc, said.stdout) == (0, "it's\n")
    assert LocalChannel("here").backend.run("exit 4").rc == 4
    assert ours.run("sleep 9", timeout=0.3).rc == 124


def test_this_machine_is_a_channel_too(ssh):
    said = LocalChannel("here").run([*HELLO, Command("b", ("sh", "-c", "exit 5"))], timeout=10, phase="p")

    assert (said["hello"].stdout, said["b"].status) == (b"hello\n", 5)


def test_a_fleet_runs_side_by_side_and_one_nodes_trouble_is_a_value(ssh, sockets, tmp_path):
    ssh.behave('case "$*" in *" bad "*) echo "ssh: connect to host bad port 22: Connection refused" >&2; exit 255;; esac')
    lost = Trouble(node="lost", problem="not in the inventory")
    channels = {name: SshChannel(name, name, SshLogin(), sockets) for name in ("good", "bad", "idle")}
    fleet = Fleet({**channels, "lost": lost}, Deadline.starting_now(60), Archive(tmp_path / "raw"))

    said = fleet.run({"good": HELLO, "bad": HELLO, "lost": HELLO, "idle": (), "never": HELLO}, phase="snapshot")

    assert said["good"]["hello"].stdout == b"hello\n"
    assert "refused" in said["bad"].problem
    assert said["lost"] is lost
    assert said["idle"] == {}
    assert said["never"].remedy == "add it to nodes: in the inventory"
    assert {node: trips for node, (trips, _) in fleet.phases()["snapshot"].items()} == {"good": 1, "bad": 1}
    assert [path.name for path in (tmp_path / "raw").glob("*/*.out")] == ["hello.out"]


def test_past_its_deadline_a_fleet_asks_nothing_and_says_so(ssh, sockets):
    fleet = Fleet({"a": SshChannel("a", "a", SshLogin(), sockets)}, Deadline.starting_now(-1))

    trouble = fleet.run({"a": HELLO}, phase="traffic")["a"]

    assert "deadline of -1 s has passed (in: traffic)" in trouble.problem
    assert "--deadline" in trouble.remedy
    assert not ssh.calls()


def test_what_undoes_a_change_is_asked_though_the_time_is_up(ssh, sockets):
    fleet = Fleet({"a": SshChannel("a", "a", SshLogin(), sockets)}, Deadline.starting_now(-1))

    fleet.run_one("a", HELLO, phase="outage-end", undoing=True)

    assert ssh.calls()


def test_a_batch_gets_no_more_time_than_is_left(ssh, sockets):
    ssh.behave("sleep 60 & wait")
    fleet = Fleet({"a": SshChannel("a", "a", SshLogin(), sockets)}, Deadline.starting_now(0.6))
    began = time.monotonic()

    trouble = fleet.run({"a": HELLO}, phase="traffic", timeout=50)["a"]

    assert time.monotonic() - began < 5
    assert "deadline" in trouble.problem


def test_a_changed_host_key_is_taken_out_of_the_file_that_ssh_names():
    text = (
        "@@@@@@@@@@@@@@@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@@@@@@@@@@@@@@@@@\n"
        "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nOffending ED25519 key in /home/me/known_hosts:3\n"
        "Host key for [10.0.0.1]:2222 has changed and you have requested strict checking.\nHost key verification failed."
    )
    trouble = troubles.of_connection("worker1", "box", "ssh box", text)

    assert trouble is not None
    assert "ssh-keygen -R '[10.0.0.1]:2222' -f /home/me/known_hosts, then ssh box once" in (trouble.remedy or "")
    assert "Offending ED25519 key in /home/me/known_hosts:3" in trouble.output
    assert "@@@@" not in trouble.output


def test_where_sudo_refuses_the_line_for_sudoers_names_the_user():
    trouble = troubles.of_connection("worker1", "box", "ssh box", "sudo: a password is required", "servicepath")

    assert trouble is not None
    assert (trouble.remedy or "").endswith(": servicepath ALL=(root) NOPASSWD: /bin/sh")
