"""A run as a user starts it, recorded against a cluster of stand-ins and replayed: the same verdicts, nothing private, clear refusals."""

from __future__ import annotations

import json
import pathlib
import re
import shutil

import pytest

from selftests import fake_api, fake_ssh, recordings
from selftests.test_doctor import DNS, node, pod
from servicepath.channel import Command
from servicepath.experiments import private
from servicepath.inventory import ApiOutage, Inventory
from servicepath.observation import Observation
from servicepath.recording import head, storage
from servicepath.recording.model import Recording, RecordingError
from servicepath.recording.recorder import Recorder
from servicepath.selection import Options

SECRET = "sesame"
CONFIG = "/api/v1/namespaces/cilium/configmaps/cilium-config"


@pytest.fixture
def cluster(tmp_path):
    """A fake API with one node and secrets in all places where people have them."""
    container = {
        "name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": SECRET}], "args": [f"--token={SECRET}"], "command": [SECRET],
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    }  # fmt: skip
    client = pod("client", "default", "10.42.0.9")
    volumes = [{"csi": {"volumeAttributes": {"key": SECRET}}}]
    client["spec"] |= {"containers": [container], "initContainers": [container], "volumes": volumes}
    client["metadata"]["annotations"] = {"vault.example.com/token": SECRET, "kubectl.kubernetes.io/last-applied-configuration": SECRET}
    agent = pod("cilium-1", "cilium", "192.168.55.10")
    agent["metadata"]["labels"] = {"k8s-app": "cilium"}
    with fake_api.serve() as server:
        server.documents["/api/v1/nodes"] = {"items": [node("master")]}
        server.documents["/api/v1/services"] = {"items": [DNS]}
        server.documents["/api/v1/pods"] = {"items": [client, agent]}
        server.documents[CONFIG] = {
            "kind": "ConfigMap",
            "data": {
                "etcd-password": SECRET, "api-key": SECRET, "kvstore-opt": f"https://root:{SECRET}@etcd:2379", "extra": f"token: {SECRET}",
                "key.pem": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----", "routing-mode": "tunnel",
            },
        }  # fmt: skip
        kubeconfig = server.kubeconfig()
        kubeconfig["users"][0]["user"]["token"] = SECRET
        (tmp_path / "kubeconfig.yaml").write_text(json.dumps(kubeconfig))
        outage = f"{{node: master, do: 'curl -H \"Authorization: Bearer {SECRET}\" x', undo: 'undo --password {SECRET}'}}"
        text = f"kubeconfig: kubeconfig.yaml\nnodes: {{master: }}\nlan_client: {{host: desk}}\napi_outage: {outage}\n"
        (tmp_path / "inventory.yaml").write_text(text)
        yield server


def record(root, *arguments, to="kept"):
    tools = {"PATH": fake_ssh.on_path(root), "MY_PASSWORD": SECRET}
    return recordings.suite(root, f"--record={root / to}", *arguments, **tools)


def told(root):
    """All of a run's verdicts but for how long they took."""
    return [{key: value for key, value in v.items() if key != "duration"} for v in recordings.facts(root)["verdicts"]]


def texts(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_recorded_run_replays_to_the_same_verdicts_and_holds_no_secret(cluster, tmp_path):
    tools = fake_ssh.FakeSsh(tmp_path)
    tools.behave('case "$*" in *desk*) echo "ssh: connect to host desk port 22: Connection refused" >&2; exit 255;; esac')
    chosen = ("-k", "endpoints_ready or no_interface or no_listener or lan_host or service_rule or mode_as or packets_skip", "--disruptive")
    live = record(tmp_path, *chosen)
    then = json.loads(json.dumps(told(tmp_path)).replace(SECRET, private.NOT_KEPT))  # the live report shows the inventory's own text
    kept = texts(tmp_path / "kept")

    again = recordings.replay(tmp_path / "kept", tmp_path, "-k", chosen[1])

    assert {v["outcome"] for v in then} >= {"error"}, live.stdout[-2000:]
    different = [(old, new) for old, new in zip(then, told(tmp_path), strict=True) if old != new]
    assert different == [], again.stdout[-2000:]
    assert any("desk" in v["message"] or "connection refused" in v["message"] for v in then)
    assert [path for path, content in kept.items() if SECRET.encode() in content] == []
    assert any(b"tunnel" in content for path, content in kept.items() if "cilium-config" in path)  # the control: it was kept
    assert b"Bearer (not kept)" in kept["recording.yaml"]


def test_a_run_is_kept_with_neutral_names_from_the_start(cluster, tmp_path):
    fake_ssh.FakeSsh(tmp_path)
    live = record(tmp_path, "--redact", "-k", "endpoints_ready or no_interface", to="kept.tar.zst")
    then = [verdict["outcome"] for verdict in told(tmp_path)]

    again = recordings.replay(tmp_path / "kept.tar.zst", tmp_path, "-k", "endpoints_ready or no_interface")

    kept = b"".join(name.encode() + content for name, content in storage.files_of(tmp_path / "kept.tar.zst").items())
    assert then
    assert [verdict["outcome"] for verdict in told(tmp_path)] == then, live.stdout + again.stdout + again.stderr
    assert b"node-1" in kept
    # The stand-in for ssh asks this machine itself: where the lab is up its network namespaces are named after the lab's nodes.
    assert b"master" not in re.sub(rb"/run/netns/\S+", b"", kept)
    assert b"192.168.55.10" not in kept


def test_an_api_that_refused_refuses_again(cluster, tmp_path):
    fake_ssh.FakeSsh(tmp_path)
    cluster.refused["/api/v1/pods"] = 403
    live = record(tmp_path, "-k", "no_interface or endpoints_ready", to="kept.tar.zst")
    assert "2 errors" in live.stdout, live.stdout[-2000:] + live.stderr[-2000:]
    then = told(tmp_path)

    recordings.replay(tmp_path / "kept.tar.zst", tmp_path, "-k", "no_interface or endpoints_ready")

    assert {v["outcome"] for v in then} == {"error"}
    assert told(tmp_path) == then


def test_what_was_not_recorded_is_skipped_and_says_so(cluster, tmp_path):
    fake_ssh.FakeSsh(tmp_path)
    record(tmp_path, "-k", "endpoints_ready")

    recordings.replay(tmp_path / "kept", tmp_path, "-k", "no_interface")

    (verdict,) = told(tmp_path)
    assert (verdict["outcome"], verdict["message"]) == ("skipped", "not in this recording: nodes/master/snapshot-1")


def test_standard_input_is_in_no_recording(tmp_path):
    recorder = Recorder(tmp_path / "kept")
    command = Command("send", ("python3", "-"), stdin=SECRET.encode())
    said = Observation("a", command.name, command.argv, 0, b"out", b"", 0.0, 0.0)
    recorder.batch("a", "traffic", {"send": said}, None)
    recorder.finish(head.of_run(Inventory(), Options(), lan_client=False))

    assert not any(SECRET.encode() in content for content in texts(tmp_path / "kept").values())
    assert storage.read(tmp_path / "kept").nodes["a"]["traffic-1"]["send"] == said


@pytest.mark.parametrize(
    "text",
    ["curl -H 'Authorization: Bearer {}' x", "x --password {}", "x --token={}", "PASSWORD={} x", "https://me:{}@host/", "api_key: '{}'"],
)
def test_credentials_in_a_persons_text_are_taken_out(text):
    assert SECRET not in private.without_credentials(text.format(SECRET))
    assert private.without_credentials("kill -STOP $(cat /run/x.pid)") == "kill -STOP $(cat /run/x.pid)"


def test_the_head_names_what_decides_and_no_way_to_connect():
    outage = ApiOutage(node="a", do="x", undo="y")
    inventory = Inventory(nodes={"a": {"host": "10.0.0.1", "connection": "local"}}, api_outage=outage, ssh={"user": "root"}, context="c")
    made = head.of_run(inventory, Options(services=("a/b",), disruptive=True), lan_client=True)

    back = head.load(head.dump(made), "x")

    assert back == made
    assert (back.inventory.nodes["a"].connection, back.inventory.nodes["a"].host) == ("local", None)
    assert back.inventory.ssh.user is None
    assert back.inventory.context is None


# What cannot be used is one line.


@pytest.fixture
def kept(tmp_path):
    """A small recording in a folder."""
    said = Observation("a", "first", ("x",), 0, b"out", b"", 0.0, 0.0)
    recording = Recording(nodes={"a": {"snapshot-1": {"first": said}}}, api={}, clock={"x": (1.0,)})
    storage.write(recording, tmp_path / "kept")
    return tmp_path / "kept"


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("recording.yaml", None, "expected a recording with a recording.yaml, found none"),
        ("recording.yaml", b"schema: 0\n", "recording.yaml: schema: expected 1, found 0: record again"),
        ("recording.yaml", b"schema: 2\n", "recording.yaml: schema: expected 1, found 2: use a newer servicepath"),
        ("recording.yaml", b"schema: one\n", "recording.yaml: schema: expected 1, found 'one'"),
        ("recording.yaml", b"- no\n", "recording.yaml: schema: expected 1, found none"),
        ("recording.yaml", b"a: [\n", "recording.yaml: expected YAML"),
        ("recording.yaml", b"\xff\xfe", "recording.yaml: expected YAML"),
        ("recording.yaml", b"schema: 1\nby: x\n", "recording.yaml: made: Field required"),
        ("recording.yaml", b"schema: 1\nmade: x\nby: y\noptions: {services: 3}\n", "recording.yaml: options.services: "),
        ("nodes/a/snapshot-1/first.out", None, "nodes/a/snapshot-1/first.out: expected a file, found none"),
        ("nodes/a/snapshot-1/first.json", b"{", "nodes/a/snapshot-1/first.json: expected what --record writes there"),
        ("nodes/a/snapshot-1/first.json", b"{}", "nodes/a/snapshot-1/first.json: expected what --record writes there, found no 'status'"),
        ("nodes/a/snapshot-1/_round.json", b"[1]", "nodes/a/snapshot-1/_round.json: expected what --record writes there"),
        ("nodes/a/snapshot-1/_trouble.json", b"{}", "nodes/a/snapshot-1/_trouble.json: expected what --record writes there"),
        ("clock.json", b"[]", "clock.json: expected what --record writes there"),
    ],
)
def test_a_recording_that_is_not_right_is_refused_in_one_line(kept, file, content, says):
    (kept / file).unlink(missing_ok=True)
    if content is not None:
        (kept / file).write_bytes(content)

    with pytest.raises(RecordingError) as refused:
        storage.read(kept)
    assert str(kept) in str(refused.value)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("spoil", ["absent", "empty", "cut", "foreign", "flipped"])
def test_a_packed_recording_that_is_not_right_is_refused_in_one_line(kept, tmp_path, spoil):
    path = tmp_path / "x.tar.zst"
    storage.write(storage.read(kept), path)
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + b"\xff" * 40
    spoilt = {"absent": None, "empty": b"", "cut": whole[:middle], "foreign": b"PK\3\4" + whole, "flipped": flipped}[spoil]
    path.unlink()
    if spoilt is not None:
        path.write_bytes(spoilt)

    with pytest.raises(RecordingError) as refused:
        storage.read(path)
    assert str(refused.value).startswith(f"{path}: expected ")
    assert "\n" not in str(refused.value)


def test_a_packed_recording_is_the_same(kept, tmp_path):
    storage.write(storage.read(kept), tmp_path / "x.tar.zst")

    assert storage.files_of(tmp_path / "x.tar.zst") == storage.files_of(kept)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--replay=none"], "none: expected a recording's folder or .tar.zst, a folder of outputs, or a .zip: No such file or directory"),
        (["--replay=kept", "--record=x"], "--replay and --record exclude each other"),
        (["--replay=kept", "--inventory=x"], "--replay and --inventory exclude each other"),
        (["--redact"], "--redact needs --record; for a recording that is there: python -m servicepath.redact IN OUT"),
        (["--record=kept"], "kept: expected a new folder or file to record into: it is there already"),
    ],
)
def test_wrong_use_is_one_line(kept, tmp_path, arguments, says):
    done = recordings.suite(tmp_path, *arguments)

    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("ERROR: ")]
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert len(lines) == 1
    assert says in lines[0]
    assert "Traceback" not in done.stdout + done.stderr


def test_an_interrupted_recording_is_none(kept):
    shutil.copytree(kept, kept.parent / "half", ignore=lambda *_: ["recording.yaml"])

    with pytest.raises(RecordingError, match="was the recording run broken off"):
        storage.read(pathlib.Path(kept.parent / "half"))
