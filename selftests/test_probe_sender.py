"""What is sent: queries as dig builds them, source ports of their own, and the sender on the node, run here against loopback."""

import ipaddress
import shutil
import socket
import subprocess
import threading
import time

import dns.message
import dns.rcode
import dns.rrset
import pytest

from servicepath.experiments import capture, node_sender, node_watcher, planning, probe
from servicepath.experiments.planning import PodPlace, Surroundings, Target
from servicepath.model.addresses import Socket
from servicepath.model.flows import Probe, Source
from servicepath.model.services import ServicePort
from servicepath.parse.errors import ParseError
from servicepath.parse.probe import parse_sender

NAME = "kubernetes.default.svc.cluster.local"
LOOPBACK = ipaddress.ip_address("127.0.0.1")


def port(protocol, number):
    return ServicePort("kube-system", "kube-dns", "dns", protocol, number, None, None, None)


def answer(question):
    """What a DNS server would say: the API's ClusterIP."""
    asked = dns.message.from_wire(question)
    said = dns.message.make_response(asked)
    said.answer.append(dns.rrset.from_text(asked.question[0].name, 5, "IN", "A", "10.43.0.1"))
    return said.to_wire()


@pytest.fixture
def udp_server():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)

        def serve():
            data, peer = server.recvfrom(4096)
            server.sendto(answer(data), peer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.fixture
def tcp_server():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with server.accept()[0] as client:
                for _ in range(3):
                    length = int.from_bytes(client.recv(2), "big")
                    said = answer(client.recv(length))
                    client.sendall(len(said).to_bytes(2, "big") + said)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def sent(one):
    """The flow that came of a probe, sent by the very command that goes to a node."""
    command = probe.command("send", [one], netns=None)
    done = subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=20, check=True)
    return parse_sender(done.stdout.decode(), [one])[0]


def one_probe(protocol, number, queries, *, sport=0, timeout=2.0):
    return Probe("p", "host", Source.HOST, port(protocol, number), Socket(LOOPBACK, number), sport or free_port(), queries, timeout)


def test_a_query_is_the_notes_77_bytes_in_a_mix_of_cases():
    first, second = probe.query(NAME), probe.query(NAME)

    assert len(first.payload) == 77
    assert first.question.lower() == f"{NAME}. a"
    assert first.question != second.question
    assert first.dns_id != second.dns_id or first.payload != second.payload


def test_a_query_is_padded_to_any_size():
    assert len(probe.query(NAME, size=1422).payload) == 1422
    with pytest.raises(ValueError, match="cannot be as short"):
        probe.query(NAME, size=40)


def test_source_ports_are_each_given_once_and_never_one_in_use():
    used = frozenset(range(10240, 29900))
    given = list(probe.source_ports(used))

    assert sorted(given) == list(range(29900, 29952))
    assert not set(probe.SOURCE_PORTS) & set(range(*node_watcher.PORTS))


@pytest.mark.parametrize(("endpoints", "least", "count"), [(0, 5, 5), (1, 10, 10), (3, 5, 23), (100, 5, 64)])
def test_so_many_flows_that_a_backend_is_hardly_missed(endpoints, least, count):
    assert probe.flow_count(endpoints, least) == count


def test_an_answer_is_told_with_its_sender(udp_server):
    flow = sent(one_probe("UDP", udp_server, (probe.query(NAME),)))

    assert flow.answered
    assert flow.answers[0].values == ("10.43.0.1",)
    assert flow.answers[0].source == Socket(LOOPBACK, udp_server)


def test_several_queries_go_through_one_connection(tcp_server):
    flow = sent(one_probe("TCP", tcp_server, tuple(probe.query(NAME) for _ in range(3))))

    assert flow.connected
    assert [a.rcode for a in flow.answers] == ["NOERROR"] * 3


def test_a_refusal_is_the_kernels_word_and_no_answer():
    udp, tcp = sent(one_probe("UDP", free_port(), (probe.query(NAME),))), sent(one_probe("TCP", free_port(), ()))

    assert not udp.answered
    assert "refused" in udp.error
    assert not tcp.answered
    assert "refused" in tcp.error
    assert not udp.unsent
    assert not tcp.unsent


def test_silence_is_no_answer():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        flow = sent(one_probe("UDP", mute.getsockname()[1], (probe.query(NAME),), timeout=0.2))

    assert flow.answers == (None,)
    assert flow.error == "no answer within 0.2 s"


def test_a_taken_port_is_unsent_and_not_unanswered():
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as server:
        flow = sent(one_probe("TCP", server.getsockname()[1], (), sport=taken.getsockname()[1]))

    assert flow.unsent
    assert "in use" in flow.error


@pytest.mark.parametrize(
    "text",
    [
        "", "no JSON\n", '{"id": "other", "answers": []}\n', '{"id": "p"}\n', "[1]\n", '{"id": "p", "answers": 1}\n',
        '{"id": "p", "answers": [{"payload": "zz", "from": ["10.43.0.10", 53], "took": 1}]}\n',
        '{"id": "p", "answers": [{"payload": "00", "from": "10.43.0.10", "took": 1}]}\n',
        '{"id": "p", "answers": [{"payload": "00", "from": ["10.43.0.10", 53]}]}\n',
    ],
)  # fmt: skip
def test_a_sender_that_was_cut_off_is_an_error(text):
    with pytest.raises(ParseError, match="probe sender"):
        parse_sender(text, [one_probe("UDP", 53, ())])


def plan_of(remote=True):
    backend = Socket(ipaddress.ip_address("10.42.1.113"), 53)
    target = Target(port("UDP", 53), ipaddress.ip_address("10.43.0.10"), "dns", frozenset({backend}), backend if remote else None)
    client = PodPlace((ipaddress.ip_address("10.42.0.161"),), "/run/netns/cni-1", "lxc1")
    near = PodPlace((ipaddress.ip_address("10.42.0.7"),), "/run/netns/cni-2", "lxc2")
    own, internal = ipaddress.ip_address("192.168.55.10"), ipaddress.ip_address("10.42.0.9")
    around = Surroundings(client, (near,), "enp1s0", "cilium_vxlan", 8472, (own,), (internal,), 1450)
    return planning.plan("master", ("iptables-save",), [target], NAME, around, frozenset())


def test_the_plan_sends_what_the_notes_sent():
    plan = plan_of()

    assert len(plan.window("host")) == 10
    assert [p.queries[0].question.rsplit(" ")[1] for p in plan.window("pod")] == ["A", "AAAA", "A", "AAAA", "A"]
    assert len(plan.window("control")) == 1
    assert [len(p.queries[0].payload) + 28 for p in plan.window("size")] == [1450, 1451]
    assert len({p.sport for p in plan.probes}) == len(plan.probes)


def test_another_attempt_has_other_source_ports():
    plan = plan_of()
    again = planning.renewed(plan, frozenset())

    assert not {p.sport for p in plan.probes} & {p.sport for p in again.probes}
    assert [p.id for p in plan.probes] == [p.id for p in again.probes]
    assert [len(p.queries[0].payload) + 28 for p in again.window("size")] == [1450, 1451]


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump, which would compile the filters, is not installed")
@pytest.mark.parametrize("tap", plan_of().taps, ids=lambda tap: tap.role)
def test_every_capture_filter_compiles(tap):
    done = subprocess.run(["tcpdump", "-d", "-y", "EN10MB", tap.filter], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


# Stands in for tcpdump: says its counts on USR1, having read so many packets more each time, while so many more came; and its closing
# counts on TERM.
TCPDUMP = """
read=$1
step=$2
came=$3
more=${4:-0}
told() { echo "tcpdump: $read packets captured, $came packets received by filter, 0 packets dropped by kernel"; }
trap 'told >&2; [ $read = $came ] || read=$((read + step)); came=$((came + more))' USR1
trap 'printf "%s packets captured\\n%s packets received by filter\\n0 packets dropped by kernel\\n" $read $came >&2; exit' TERM
echo tcpdump: listening on lo >&2
while :; do sleep 0.02; done
"""


def stopped(folder, **captures):
    """What the stop command says of stand-ins, started as captures are: role → packets read, read more at each question, received."""
    started = []
    for role, numbers in captures.items():
        with (folder / f"{role}.err").open("a") as said:
            argv = ["timeout", "20", "sh", "-c", TCPDUMP, "tcpdump", *map(str, numbers)]
            started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said))
        (folder / f"{role}.pid").write_text(str(started[-1].pid))
    while any("listening" not in (folder / f"{role}.err").read_text() for role in captures):
        time.sleep(0.01)
    stop = capture.stop([capture.Tap(role, "lo", "") for role in captures], str(folder))[0]
    done = subprocess.run(stop.argv, capture_output=True, text=True, check=True, timeout=20)
    for process in started:
        process.wait(5)
    return dict(zip(captures, done.stdout.split("== ")[1:], strict=True)), done.stderr


def test_a_capture_is_ended_only_when_all_was_read_that_had_come(tmp_path):
    said, wrong = stopped(tmp_path, whole=(9, 0, 9), late=(5, 1, 9), never=(8, 0, 9))

    assert wrong == ""
    assert "9 packets captured\n9 packets received" in said["late"]
    assert all(capture.UNREAD not in each and "\n0 packets dropped by kernel" in each for each in said.values())


def test_packets_from_before_the_filter_are_no_backlog_though_others_come_all_the_time(tmp_path):
    """As seen on a slow node: many were counted that no filter had looked at, and a kubelet's probes went on."""
    said, _ = stopped(tmp_path, busy=(216, 1, 996, 1))

    assert capture.UNREAD not in said["busy"]


@pytest.mark.parametrize("numbers", [(5, 1, 9000), (5, 1, 9000, 3)])
def test_a_capture_that_had_not_read_all_says_so(tmp_path, numbers):
    said, _ = stopped(tmp_path, slow=numbers)

    assert capture.UNREAD in said["slow"]


def test_a_capture_that_ended_by_itself_says_so(tmp_path):
    """Tcpdump that reached its bound has printed its counts before it is stopped; what came later is not in it."""
    (tmp_path / "early.err").write_text("tcpdump: listening on lo\n9 packets captured\n0 packets dropped by kernel\n")
    (tmp_path / "early.pid").write_text("")
    stop = capture.stop([capture.Tap("early", "lo", "")], str(tmp_path))[0]
    done = subprocess.run(stop.argv, capture_output=True, text=True, check=True, timeout=20)

    assert capture.ENDED_EARLY in done.stdout


def test_a_capture_is_bounded_and_its_folder_goes():
    taps = plan_of().taps
    folder = capture.fresh_folder()
    start, stop = capture.start(taps, folder), capture.stop(taps, folder)

    assert f"timeout {capture.LONGEST} tcpdump -Z root" in start.argv[2]
    assert f"sleep {capture.FOLDER_LIVES}; rm -rf {folder}" in start.argv[2]
    assert stop[-1].argv[2].endswith(f"rm -rf {folder}")


def test_a_service_that_answers_nobody_is_told_flow_by_flow_within_the_commands_time():
    """kube-dns has three ports and the notes sent ten flows to each: thirty time-outs in a row would outlast the command."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        target = Socket(LOOPBACK, mute.getsockname()[1])
        probes = [
            Probe(f"p{n}", "host", Source.HOST, port("UDP", target.port), target, 0, (probe.query(NAME),), 0.3) for n in range(64)
        ]
        command = probe.command("send", probes, netns=None)
        done = subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=10, check=True)

    flows = parse_sender(done.stdout.decode(), probes)
    assert [flow.probe.id for flow in flows] == [one.id for one in probes]
    assert {flow.error for flow in flows} == {"no answer within 0.3 s"}


def test_the_commands_time_is_enough_for_a_dead_service_of_three_ports():
    probes = [one_probe("UDP", 53, (probe.query(NAME),), sport=1) for _ in range(30)]

    waits = -(-len(probes) // node_sender.AT_ONCE) * probe.ANSWER_TIMEOUT
    assert probe.command("send", probes, netns=None).timeout > waits + 2
