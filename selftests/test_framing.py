"""The framed script: any bytes in, any bytes out, and never a shorter answer."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from servicepath import framing
from servicepath.channel import Command
from servicepath.observation import Observation

BOUNDARY = "5b" * 16
SHELLS = [shell for shell in (("sh",), ("bash", "--posix"), ("busybox", "sh")) if shutil.which(shell[0])]


def run(*commands: Command, shell: tuple[str, ...] = ("sh",), script: bytes | None = None) -> dict[str, Observation]:
    script = script or framing.build(commands, BOUNDARY)
    finished = subprocess.run(shell, input=script, capture_output=True, timeout=30)
    return framing.take_apart(finished.stdout, finished.stderr, commands, BOUNDARY, "master")


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


def test_each_command_has_its_own_output_error_and_status(shell):
    said = run(
        Command("good", ("printf", "no newline")), Command("bad", ("sh", "-c", "echo out; echo err >&2; exit 3")), shell=shell
    )

    assert (said["good"].status, said["good"].stdout, said["good"].stderr) == (0, b"no newline", b"")
    assert (said["bad"].status, said["bad"].stdout, said["bad"].stderr) == (3, b"out\n", b"err\n")
    assert said["bad"].node == "master"
    assert said["bad"].started >= said["good"].started > 1_700_000_000


def test_every_byte_comes_back_as_it_went(shell):
    every_byte = bytes(range(256)) * 3 + b"\n\n"

    assert run(Command("cat", ("cat",), stdin=every_byte), shell=shell)["cat"].stdout == every_byte


def test_words_are_never_read_by_a_shell(shell):
    words = ("a b", "$HOME", "`id`", "'", '"', "*", "", "-n", "\\", "é", "a\nb")

    said = run(Command("printf", ("printf", "[%s]", *words)), shell=shell)

    assert said["printf"].text == "".join(f"[{word}]" for word in words)


def test_a_command_does_not_read_the_script():
    said = run(Command("greedy", ("cat",)), Command("after", ("echo", "still here")))

    assert said["greedy"].stdout == b""
    assert said["after"].stdout == b"still here\n"


def test_a_command_past_its_time_is_ended_and_has_no_status(shell):
    said = run(Command("slow", ("sleep", "30"), timeout=1), Command("after", ("echo", "x")), shell=shell)

    assert said["slow"].status is None
    assert 0.9 <= said["slow"].took < 5
    assert said["after"].stdout == b"x\n"


def test_without_timeout_the_shell_ends_it_itself(shell):
    commands = (
        Command("in", ("cat",), stdin=b"\0x\n"), Command("slow", ("sleep", "30"), timeout=1), Command("seven", ("sh", "-c", "exit 7"))
    )  # fmt: skip
    script = framing.build(commands, BOUNDARY).replace(b"if timeout -k 1 1 true", b"if false")

    said = run(*commands, shell=shell, script=script)

    assert said["in"].stdout == b"\0x\n"
    assert said["slow"].status is None
    assert said["seven"].status == 7


def test_without_timeout_no_command_waits_for_its_limit_where_sigterm_is_ignored(shell):
    command = Command("quick", ("echo", "x"), timeout=60)
    script = framing.build([command], BOUNDARY).replace(b"if timeout -k 1 1 true", b"if false")

    said = run(command, shell=("sh", "-c", "trap '' TERM; exec \"$@\"", "sh", *shell), script=script)

    assert said["quick"].stdout == b"x\n"


def test_a_status_of_124_that_came_early_is_the_commands_own():
    assert run(Command("own", ("sh", "-c", "exit 124"), timeout=9))["own"].status == 124


def test_what_comes_before_the_first_marker_is_nobodys():
    command = Command("a", ("echo", "x"))
    finished = subprocess.run(["sh"], input=framing.build([command], BOUNDARY), capture_output=True, timeout=30)

    said = framing.take_apart(b"Welcome!\n" + finished.stdout, b"motd\n" + finished.stderr, [command], BOUNDARY, "n")

    assert (said["a"].stdout, said["a"].stderr) == (b"x\n", b"")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_prefix_of_a_stream_is_taken_for_an_answer(stream):
    commands = [Command("a", ("echo", "x")), Command("b", ("echo", "y"))]
    finished = subprocess.run(["sh"], input=framing.build(commands, BOUNDARY), capture_output=True, timeout=30)
    whole = {"stdout": finished.stdout, "stderr": finished.stderr}

    for length in range(len(whole[stream])):
        with pytest.raises(framing.CutOff, match="cut off"):
            framing.take_apart(*(whole | {stream: whole[stream][:length]}).values(), commands, BOUNDARY, "n")


def test_a_script_that_arrives_in_part_runs_nothing(tmp_path):
    witness = tmp_path / "ran"
    script = framing.build([Command("touch", ("touch", str(witness))), Command("b", ("true",))], BOUNDARY)

    subprocess.run(["sh"], input=script[: len(script) - 8], capture_output=True, timeout=30)

    assert not witness.exists()


def test_two_commands_of_one_name_are_a_mistake_of_ours():
    with pytest.raises(ValueError, match="called 'a'"):
        run(Command("a", ("true",)), Command("a", ("true",)))


def test_a_network_namespace_is_entered_by_nsenter():
    command = Command("a", ("ip", "addr"), netns="/run/netns/cni-1")

    assert framing.argv_of(command) == ("nsenter", "--net=/run/netns/cni-1", "ip", "addr")
    assert b"limit 10 nsenter --net=/run/netns/cni-1 ip addr </dev/null" in framing.build([command], BOUNDARY)


def test_k3s_own_tools_are_asked_last():
    path = run(Command("path", ("sh", "-c", "echo $PATH")))["path"].text.strip().split(":")

    assert path[-1] == "/var/lib/rancher/k3s/data/current/bin/aux"
    assert {"/usr/sbin", "/sbin", "/usr/local/sbin"} <= set(path)


def test_times_of_a_date_without_fractions_are_read():
    text = f"\n{BOUNDARY} 0 1764480001.%N 100.00\nx\n{BOUNDARY} 1 0 101.50\n".encode()
    errors = f"\n{BOUNDARY} 0\n\n{BOUNDARY} 1\n".encode()

    said = framing.take_apart(text, errors, [Command("a", ("x",))], BOUNDARY, "n")["a"]

    assert (said.started, said.took, said.stdout) == (1764480001.0, 1.5, b"x")
