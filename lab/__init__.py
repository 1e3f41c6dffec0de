"""A real three-node Kubernetes cluster with Cilium beside kube-proxy, on one Linux machine."""
