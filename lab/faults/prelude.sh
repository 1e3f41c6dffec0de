# Read before each fault's own lines. What it may use besides the variables of lab/faults/places.py:
# svc NAMESPACE/NAME:PORT     the name of kube-proxy's chain for a Service port on this node
# sep NAMESPACE/NAME:PORT IP  the name of its chain for an endpoint
# netns IP                    the name of the network namespace of the Pod of this node that has the address
# pod IP COMMAND …            run a command in the network of the Pod of this node that has the address
# keep COMMAND …              start a program that goes on; "end" ends all of them
# hold 'SHELL TEXT'           do it again and again, against an agent that puts things right; "end" ends that, too
# alive                       whether what was kept still goes on
svc() { iptables-save -t nat | sed -n "s|^-A KUBE-SERVICES .*\"$1 cluster IP\".* -j \(KUBE-SV[CL]-[A-Z0-9]*\)$|\1|p" | head -n 1; }
sep() { iptables-save -t nat | sed -n "s|^-A $(svc "$1") .*\"$1 -> $2:[0-9]*\".* -j \(KUBE-SEP-[A-Z0-9]*\)$|\1|p" | head -n 1; }
netns() {
    for path in /run/netns/cni-*; do
        if ip -n "${path##*/}" -o address show | grep -q "inet $1/"; then echo "${path##*/}"; return; fi
    done
    echo "no Pod's network here has the address $1" >&2
    return 1
}
pod() { ip=$1; shift; ip netns exec "$(netns "$ip")" "$@"; }
keep() { setsid -f sh -c 'echo $$ >> "$KEEP/pids"; exec "$@"' keep "$@" < /dev/null >> "$KEEP/log" 2>&1; }
end() {
    [ -e "$KEEP/pids" ] || return 0
    for pid in $(cat "$KEEP/pids"); do kill -KILL "$pid" 2> /dev/null || true; done
    rm -f "$KEEP/pids"
}
hold() { keep sh -c "while :; do { $1; } > /dev/null 2>&1; sleep 0.1; done"; }
alive() { grep -q . "$KEEP/pids" && kill -0 $(cat "$KEEP/pids"); }
