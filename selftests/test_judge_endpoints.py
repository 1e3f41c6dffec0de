"""A Service's ready endpoints against the ready Pods that its selector matches."""

import dataclasses
import json
import pathlib

import host_samples as sample
import pytest
from host_samples import ip, pod, port, service

from servicepath.model import judge_endpoints
from servicepath.model.services import Endpoint
from servicepath.parse import kubernetes

DATA = pathlib.Path(__file__).parent / "data"
CASE_21 = DATA / "cases" / "21-headless-and-no-selector"


def endpoint(address="10.42.1.113", *, number=53, ready=True, slice_name="kube-dns-abc", **changes):
    made = Endpoint(
        "kube-system",
        "kube-dns",
        slice_name,
        ip(address),
        ready,
        ready,
        False,
        "worker1",
        "kube-system/coredns-a",
        {("dns", "UDP"): number},
    )
    return dataclasses.replace(made, **changes)


def judged(*, pods=None, endpoints=None, of=None):
    made = of or service()
    all_pods, all_endpoints = [pod()] if pods is None else pods, [endpoint()] if endpoints is None else endpoints
    objects = sample.objects(services=(made,), pods=tuple(all_pods), endpoints=tuple(all_endpoints))
    assert judge_endpoints.not_judged(objects, made) is None
    return judge_endpoints.judge_endpoints(objects, made, made.ports[0])


def test_a_ready_pod_and_its_endpoint_agree():
    assert judged() == ()
    assert judged(pods=(), endpoints=()) == ()


def test_an_endpoint_without_a_ready_pod_is_named_with_what_is_known_of_the_pod():
    assert "no Pod has the address 10.42.1.113" in str(judged(pods=())[0])
    assert "Running not ready" in str(judged(pods=[pod(ready=False)])[0])
    assert "not matched by the selector" in str(judged(pods=[pod(labels={})])[0])
    assert "not matched" in str(judged(pods=[pod(namespace="other")])[0])
    assert "has the port at 54" in str(judged(pods=[pod(container_ports={("dns", "UDP"): 54})])[0])


def test_a_ready_pod_without_an_endpoint_is_named():
    wrong = judged(pods=[pod(), pod("coredns-b", "10.42.2.5")])
    assert [d.subject for d in wrong] == ["kube-system/kube-dns:dns/UDP: Pod kube-system/coredns-b"]
    assert "10.42.2.5:53 with ready=true" in str(wrong[0])
    not_ready = judged(endpoints=[endpoint(ready=False)])
    assert "ready=false" in not_ready[0].evidence[0]


@pytest.mark.parametrize("conditions", [{"ready": None, "serving": None, "terminating": None}, {"serving": None}])
def test_a_condition_that_is_left_out_means_ready(conditions):
    assert judged(endpoints=[endpoint(**conditions)]) == ()


def test_terminating_pods_are_not_ready_endpoints():
    leaving = pod("coredns-b", "10.42.2.5", terminating=True)
    assert judged(pods=[pod(), leaving], endpoints=[endpoint(), endpoint("10.42.2.5", ready=False, serving=True, terminating=True)]) == ()
    assert "terminating" in str(judged(pods=[pod(), leaving], endpoints=[endpoint(), endpoint("10.42.2.5")])[0])


def test_pods_at_their_end_and_pods_without_an_address_are_none():
    assert (
        judged(pods=[pod(), pod("done", "10.42.1.9", phase="Succeeded", ready=False), dataclasses.replace(pod("new"), ips=(), ready=False)])
        == ()
    )


def test_not_ready_addresses_are_published_where_the_service_says_so():
    publishing = service(publish_not_ready=True)
    assert judged(of=publishing, pods=[pod(ready=False)]) == ()
    assert judged(of=publishing, pods=[pod(ready=False)], endpoints=[endpoint(ready=False)])


@pytest.mark.parametrize(("target", "number"), [("dns", 5353), ("8053", 8053), (None, 53)])
def test_target_ports_are_resolved_by_each_pod(target, number):
    made = service(ports=[port(target=target)])
    pods = [pod(container_ports={("dns", "UDP"): 5353, ("dns", "TCP"): 1})]
    assert judged(of=made, pods=pods, endpoints=[endpoint(number=number)]) == ()
    assert judged(of=made, pods=pods, endpoints=[endpoint(number=7)])


def test_pods_may_have_the_named_port_at_different_numbers_or_not_at_all():
    pods = [pod(), pod("coredns-b", "10.42.2.5", container_ports={("dns", "UDP"): 1053}), pod("coredns-c", "10.42.2.6", container_ports={})]
    two = [endpoint(), endpoint("10.42.2.5", number=1053, slice_name="kube-dns-def")]
    without_the_port = endpoint("10.42.2.6", slice_name="kube-dns-ghi", ports={})
    assert judged(pods=pods, endpoints=[*two, without_the_port]) == ()


def test_several_slices_are_merged():
    pods = [pod(), pod("coredns-b", "10.42.2.5")]
    assert judged(pods=pods, endpoints=[endpoint(), endpoint("10.42.2.5", slice_name="x"), endpoint(slice_name="x")]) == ()


def test_only_addresses_of_the_services_families_count():
    dual = pod("coredns-a", "10.42.1.113", "fd42::113")
    assert judged(pods=[dual]) == ()
    both = service(cluster_ips=(ip("10.43.0.10"), ip("fd43::a")), families=(4, 6))
    assert [d.expected for d in judged(of=both, pods=[dual])] == ["[fd42::113]:53 with ready=true"]
    assert judged(of=both, pods=[dual], endpoints=[endpoint(), endpoint("fd42::113", slice_name="v6")]) == ()


def test_host_network_pods_are_at_their_nodes_address():
    assert judged(pods=[pod("p", "192.168.55.11", host_network=True)], endpoints=[endpoint("192.168.55.11")]) == ()


def test_a_real_cluster_holds():
    objects = kubernetes.parse_kubernetes(json.loads((DATA / "kubernetes-1.34.4" / "answers.json").read_text()))
    dns = objects.service("kube-system/kube-dns")
    assert [judge_endpoints.judge_endpoints(objects, dns, each) for each in dns.ports] == [(), ()]
    assert judge_endpoints.silent(objects, dns) is None
    assert any(line.startswith("EndpointSlice kube-system/kube-dns-") for line in judge_endpoints.describe(objects, dns))
    assert "has no selector" in judge_endpoints.not_judged(objects, objects.service("default/kubernetes"))


@pytest.mark.parametrize(
    ("key", "reason"),
    [("db/pg-headless", "headless"), ("db/ext-api", "no selector"), ("web/shop-ext", "ExternalName"), ("web/proxied-by-other", None)],
)
def test_case_21_what_cannot_be_compared_with_pods_is_not_judged(key, reason):
    services = kubernetes.parse_services(json.loads((CASE_21 / "services.json").read_text()))
    endpoints = kubernetes.parse_endpoint_slices(json.loads((CASE_21 / "endpointslices.json").read_text()))
    objects = sample.objects(services=services, endpoints=endpoints)
    said = judge_endpoints.not_judged(objects, objects.service(key))
    assert (said is None) if reason is None else (reason in said)
    if key == "db/ext-api":
        assert "ext-api-m0nit" in said
        assert [str(s) for s in objects.serving(objects.service(key), objects.service(key).ports[0])] == ["192.168.77.5:8443"]


def test_an_empty_slice_proves_nothing_while_pods_match():
    def silent(pods, endpoints=()):
        return judge_endpoints.silent(sample.objects(pods=tuple(pods), endpoints=tuple(endpoints)), service())

    assert silent([]) is None
    assert "matches 1 Pods" in silent([pod(ready=False)])
    assert silent([pod(ready=False)], [endpoint(ready=False)]) is None
    assert silent([pod(labels={})]) is None
    assert silent([pod()]) is None  # a ready Pod and no endpoint is a difference, seen and named
