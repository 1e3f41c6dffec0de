"""Reading the API and asking the agents, against a server of a few lines on this machine."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
import time

import fake_api
import fake_ssh
import pytest

from servicepath.channel import Command
from servicepath.deadline import Deadline
from servicepath.experiments import agent, api
from servicepath.model.services import Pod
from servicepath.observation import CouldNotSee, Trouble

CONFIG_PATH = "/api/v1/namespaces/cilium/configmaps/cilium-config"


@pytest.fixture(scope="module")
def _server():
    with fake_api.serve() as server:
        yield server


@pytest.fixture
def server(_server):
    _server.__init__(_server.address)
    return _server


@pytest.fixture
def client(server):
    return api.connect(server.kubeconfig(), context=None)


def unseen(act, *arguments, **named):
    with pytest.raises(CouldNotSee) as raised:
        act(*arguments, **named)
    return raised.value.trouble


def pod(name="cilium-x", node="master", phase="Running"):
    ip = ipaddress.ip_address("192.168.55.10")
    return Pod("cilium", name, node, (ip,), True, phase, True, False, {"k8s-app": "cilium"}, {})


def test_everything_is_read_and_kept_under_its_name(server, client):
    server.documents["/api/v1/pods"] = {"items": [{"metadata": {"namespace": "cilium", "name": "a", "labels": {"k8s-app": "cilium"}}}]}
    server.documents[CONFIG_PATH] = {"data": {"routing-mode": "tunnel"}}

    reading = api.read_cluster(client)

    assert reading.documents["version"] == {"gitVersion": "v1.34.4+k3s1"}
    assert reading.documents["cilium-config"] == {"data": {"routing-mode": "tunnel"}}
    assert {o.name for o in reading.observations} == {*api.PATHS, "cilium-config"}
    assert {(o.node, o.status) for o in reading.observations} == {("api", 0)}
    assert not any("secret" in path for path in server.paths)


def test_what_pods_carry_in_their_environment_is_not_kept(server, client):
    container = {"name": "c", "env": [{"name": "PASSWORD", "value": "sesame"}], "args": ["--token=sesame"], "ports": []}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "sesame", "service.kubernetes.io/topology-mode": "Auto"}
    server.documents["/api/v1/pods"] = {
        "items": [{"metadata": {"namespace": "n", "name": "p", "annotations": annotations}, "spec": {"containers": [container]}}]
    }

    reading = api.read_cluster(client)

    assert not any(b"sesame" in o.stdout for o in reading.observations)
    assert reading.documents["pods"]["items"][0]["spec"]["containers"] == [{"name": "c", "ports": []}]
    assert reading.documents["pods"]["items"][0]["metadata"]["annotations"] == {"service.kubernetes.io/topology-mode": "Auto"}


def test_a_cluster_without_cilium_and_without_servicecidrs_is_read(server, client):
    for path in fake_api.LISTS[-3:]:
        del server.documents[path]
    server.refused["/apis/networking.k8s.io/v1/servicecidrs"] = 403
    server.refused["/api/v1/namespaces/kube-system"] = 403

    documents = api.read_cluster(client).documents

    assert {name for name, document in documents.items() if document is None} == {
        "servicecidrs", "ciliumnodes", "ciliumnetworkpolicies", "ciliumclusterwidenetworkpolicies", "cilium-config", "kube-system",
    }  # fmt: skip


def test_what_is_forbidden_is_named_with_the_remedy(server, client):
    server.refused = {"/api/v1/pods": 403, "/apis/cilium.io/v2/ciliumnodes": 403}

    trouble = unseen(api.read_cluster, client)

    assert trouble.problem == "the API refused: /api/v1/pods (403), /apis/cilium.io/v2/ciliumnodes (403)"
    assert "docs/rights/rbac.yaml" in trouble.remedy
    assert 'cannot get "/api/v1/pods"' in trouble.output


def test_an_api_that_refuses_the_connection_is_one_trouble_at_once(server):
    client = api.connect(server.kubeconfig("http://127.0.0.1:1"), context=None)
    began = time.monotonic()

    trouble = unseen(api.read_cluster, client)

    assert time.monotonic() - began < 3
    assert trouble.problem == "no answer from http://127.0.0.1:1"
    assert "refused" in trouble.output


def test_an_api_that_does_not_answer_is_given_up_after_one_time_out(server, client):
    server.delay = 1.5
    began = time.monotonic()

    trouble = unseen(api.read_cluster, client, timeout=0.3)

    assert time.monotonic() - began < 1.4
    assert "timed out" in trouble.output


def test_no_token_is_ever_in_a_trouble(server):
    client = api.connect(server.kubeconfig("http://127.0.0.1:1"), context=None)

    assert "sesame" not in str(unseen(api.read_cluster, client))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_a_kubeconfig_that_may_not_be_read_is_one_line(tmp_path, server):
    path = server.write_kubeconfig(tmp_path / "k3s.yaml")
    path.chmod(stat.S_IWUSR)

    assert "kubeconfig_from" in unseen(api.connect, path, context=None).remedy


def test_an_absent_kubeconfig_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    assert unseen(api.connect, None, context=None).problem == f"no kubeconfig at {tmp_path / 'none'}"
    assert unseen(api.connect, tmp_path, context=None).problem.startswith("kubeconfig: ")


def test_kubeconfig_of_the_environment_counts(tmp_path, monkeypatch, server):
    monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "k")))

    assert api.connect(None, context=None).configuration.host == server.address


@pytest.mark.parametrize("content", [{}, {"current-context": "a", "contexts": []}])
def test_what_is_no_kubeconfig_is_one_line(content):
    assert "the kubeconfig cannot be used" in unseen(api.connect, content, context=None).problem


def test_a_context_that_is_not_there_is_one_line(server):
    assert "other" in unseen(api.connect, server.kubeconfig(), context="other").problem


@pytest.fixture
def tools(tmp_path, monkeypatch):
    fake = fake_ssh.FakeSsh(tmp_path)
    monkeypatch.setenv("PATH", fake_ssh.on_path(tmp_path))
    return fake


def ask(client, agents, commands=None, *, timeout=10.0, deadline=60.0):
    batch = dict.fromkeys(agents, commands or agent.commands()) if agents else {"master": agent.commands()}
    return agent.exec_in_agents(client, agents, batch, deadline=Deadline.starting_now(deadline), phase="agents", timeout=timeout)


def test_each_agent_is_asked_by_one_exec(server, client, tools):
    tools.program("cilium-dbg", 'echo "$0 $*" | sed "s,.*/,,"; seq 3000')

    said = ask(client, {"master": pod(), "worker1": pod("cilium-y", "worker1")})

    assert said["master"]["agent-services"].text.startswith("cilium-dbg service list -o json\n1\n")
    assert said["worker1"]["agent-lb-list"].text.endswith("\n3000\n")
    assert sorted(server.paths) == [f"/api/v1/namespaces/cilium/pods/cilium-{x}/exec" for x in "xy"]


def test_an_agent_from_before_1_15_is_asked_by_the_old_name(server, client, tools):
    tools.program("cilium", 'echo "old $*"')

    said = ask(client, {"master": pod()})

    assert said["master"]["agent-status"].text == "old status -o json\n"
    assert said["master"]["agent-status"].argv[0] == "cilium"


def test_bytes_that_are_no_text_come_through(server, client, tools):
    said = ask(client, {"master": pod()}, [Command("bytes", ("printf", "\\377\\000x"))])

    assert said["master"]["bytes"].stdout == b"\xff\0x"


def test_a_forbidden_exec_names_node_status_and_right(server, client):
    server.refused["/api/v1/namespaces/cilium/pods/cilium-x/exec"] = 403

    trouble = ask(client, {"master": pod()})["master"]

    assert isinstance(trouble, Trouble)
    assert trouble.problem == "no exec into the Cilium agent cilium/cilium-x (HTTP 403)"
    assert trouble.output == 'cannot get "/api/v1/namespaces/cilium/pods/cilium-x/exec"'
    assert "pods/exec" in trouble.remedy
    assert "sesame" not in str(trouble)


def test_one_agents_trouble_leaves_the_others(server, client, tools):
    tools.program("cilium-dbg", "echo x")
    agents = {"master": pod(), "worker1": pod("cilium-y", "worker1", phase="Pending")}

    said = ask(client, agents)

    assert said["master"]["agent-status"].text == "x\n"
    assert said["worker1"].problem == "the Cilium agent cilium/cilium-y is Pending, not Running"


def test_a_node_without_an_agent_is_a_trouble(client):
    assert "no Cilium agent" in ask(client, {})["master"].problem


def test_an_agents_output_that_is_cut_off_is_no_answer(server, client, tools):
    tools.program("cilium-dbg", "echo x")
    server.cut_exec = 80

    problem = ask(client, {"master": pod()})["master"].problem
    assert "cut off" in problem
    assert "the connection ended before it told how the commands ended" in problem


def test_an_agent_that_hangs_is_given_up(client, tools):
    began = time.monotonic()

    trouble = ask(client, {"master": pod()}, [Command("slow", ("sleep", "3"))], timeout=1)["master"]

    assert time.monotonic() - began < 2.5
    assert "did not answer within 1 s" in trouble.problem


def test_past_the_deadline_no_agent_is_asked(server, client):
    assert "deadline" in ask(client, {"master": pod()}, deadline=-1)["master"].problem
    assert not server.paths


def test_the_archive_can_hold_what_the_api_said(server, client, tmp_path):
    from servicepath.observation import Archive

    reading = api.read_cluster(client)
    Archive(tmp_path).add(reading.observations)

    assert json.loads((tmp_path / "api" / "version.out").read_text()) == {"gitVersion": "v1.34.4+k3s1"}


GOOD = """\
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: x}}]
"""


@pytest.mark.parametrize(
    "text",
    [
        "- a\n", "hello\n", "a: [", GOOD.replace("{cluster: c, user: u}", "5"), GOOD.replace("'https://127.0.0.1:1'", "5"),
        GOOD.replace("token: x", "auth-provider: {name: gcp}"), GOOD.replace("name: a,", "name: b,"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_kubeconfig_is_one_line(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    trouble = unseen(api.connect, path, context=None)

    assert trouble.problem.startswith("the kubeconfig cannot be used")
    assert "\n" not in trouble.problem


def test_an_expired_certificate_has_a_remedy_of_its_own(client):
    text = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired"

    assert "renew it" in api.unreachable(client, "/version", OSError(text)).remedy


def test_lists_and_maps_that_are_null_are_empty(server, client):
    pods = [{"metadata": {"namespace": "a", "name": "b", "labels": None, "annotations": None}, "spec": {"containers": None}}]
    server.documents["/api/v1/pods"] = {"items": pods}
    server.documents["/api/v1/services"] = {"items": None}

    assert api.read_cluster(client).documents["services"] == {"items": None}


def test_an_answer_that_is_no_object_is_said_so(server, client):
    server.documents["/api/v1/nodes"] = ["a"]

    assert "nodes: the answer is no object" in unseen(api.read_cluster, client).problem
