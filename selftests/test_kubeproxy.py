"""kube-proxy's /proxyMode and /metrics, before and after Kubernetes 1.34 gave the metrics their family."""

import pytest

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
    assert (sync.count, sync.full, sync.failures) == ({"IPv4": 17}, {"IPv4": 2}, {"IPv4": 0})
    old = parse_kubeproxy_metrics(OLD)
    assert (old.last, old.count, old.queued) == ({"any": 1.6e9}, {"any": 5}, {})


def test_a_sync_between_two_readings_is_seen():
    before = parse_kubeproxy_metrics(NEW)
    assert before.synced_since(before) is False
    assert parse_kubeproxy_metrics(NEW.replace("1234e", "2234e")).synced_since(before) is True
    nothing = parse_kubeproxy_metrics("kubeproxy_sync_proxy_rules_iptables_total 1\n")
    assert nothing.synced_since(nothing) is None


@pytest.mark.parametrize(
    "text", ["", "go_goroutines 12\n", "<html>\n", "kubeproxy_sync_proxy_rules_duration_seconds_count x\n", OLD.rstrip("\n"),
             "kubeproxy_sync_proxy_rules_duration_seconds_count NaN\n"]
)  # fmt: skip
def test_what_holds_no_sync_metrics_is_an_error(text):
    with pytest.raises(ParseError):
        parse_kubeproxy_metrics(text)
