#!/bin/sh
# Install the Debian (or Ubuntu) packages that the lab needs, and those named as arguments: with apt as root, else say what to type.
# No service is started by it: a policy-rc.d of our own stands in the way while apt runs, unless the machine has one already.
set -eu
wanted="bpftool busybox-static catatonit ca-certificates conntrack containerd containernetworking-plugins curl dnsutils etcd-server
ethtool iproute2 ipset iptables mmdebstrap nftables openssh-client openssh-server procps runc sudo tcpdump util-linux"
[ "$(command -v python3)" != /usr/bin/python3 ] || wanted="$wanted python3-venv"

if ! command -v dpkg-query >/dev/null; then
    echo "this machine has no apt; the lab needs what these Debian packages bring:" $wanted "$@"
    exit 0 # the lab's own check names what is really missing
fi
missing=""
for package in $wanted "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    echo "missing packages; type: sudo apt-get update && sudo apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends $missing >/dev/null
