"""kube-proxy's /proxyMode and /metrics, before and after Kubernetes 1.34 gave the metrics their family."""

import pytest

from servicepath.model.kubeproxy import ProxySync
from servicepath.parse.errors import ParseError
from servicepath.parse.kubeproxy import parse_kubeproxy_metrics, parse_proxy_mode

NEW = """\
# HELP kubeproxy_sync_proxy_rules_last_timestamp_seconds [ALPHA] The last time proxy rules were successfully synced
# TYPE kubeproxy_sync_proxy_rules_last_timestamp_seconds gauge
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7961000001234e+09
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.796100000e+09
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 17
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 17
kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"} 2
kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} 0
kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"} 42
go_info{version="go1.24.9 X:{nocoverageredesign},\\"x\\""} 1
"""
OLD = "kubeproxy_sync_proxy_rules_last_timestamp_seconds 1.6e+09\nkubeproxy_sync_proxy_rules_duration_seconds_count 5\n"


@pytest.mark.parametrize("mode", ["iptables", "ipvs", "nftables"])
def test_modes_are_read(mode):
    assert parse_proxy_mode(f"{mode}\n") == mode


@pytest.mark.parametrize("text", ["", "<html>404</html>", "iptables ipvs"])
def test_another_answer_is_no_mode(text):
    with pytest.raises(ParseError):
        parse_proxy_mode(text)


def test_sync_metrics_are_read():
    sync = parse_kubeproxy_metrics(NEW)
    assert sync.last == {"IPv4": 1796100000.1234}
    assert sync.queued == {"IPv4": 1796100000.0}
    old = parse_kubeproxy_metrics(OLD)
    assert (old.last, old.queued) == ({"any": 1.6e9}, {})


def test_rules_are_unsettled_while_a_sync_is_asked_for_or_around_the_time_at_which_they_were_read():
    at_rest = ProxySync({"IPv4": 100.0, "IPv6": 99.0}, {"IPv4": 99.5, "IPv6": 98.5})

    assert at_rest.unsettled(110.0) is None
    assert at_rest.unsettled(102.0) == "kube-proxy wrote its rules 2.0 s before they were read"
    assert at_rest.unsettled(99.9) == "kube-proxy wrote its rules after they were read"
    behind = ProxySync({"IPv4": 100.0, "IPv6": 99.0}, {"IPv4": 99.5, "IPv6": 99.5})
    assert behind.unsettled(1000.0) == "kube-proxy has yet to write rules that it was asked for"
    assert ProxySync({}, {}).unsettled(5.0) is None
    assert ProxySync({}, {"any": 1.0}).unsettled(5.0) == "kube-proxy has yet to write rules that it was asked for"


@pytest.mark.parametrize(
    "text", ["", "go_goroutines 12\n", "<html>\n", "kubeproxy_sync_proxy_rules_duration_seconds_count x\n", OLD.rstrip("\n"),
             "kubeproxy_sync_proxy_rules_duration_seconds_count NaN\n"]
)  # fmt: skip
def test_what_holds_no_sync_metrics_is_an_error(text):
    with pytest.raises(ParseError):
        parse_kubeproxy_metrics(text)
