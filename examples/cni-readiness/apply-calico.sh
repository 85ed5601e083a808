#!/bin/sh
# Installs Calico and adds the reporter to it: IMAGE=REGISTRY/nodegate:0.1.0 sh apply-calico.sh
#
#   IMAGE    your image: docs/installation.md says how to build it
#   CALICO   Calico's manifest, a file or an address; by default the one below
set -eu
: "${IMAGE:?names no image: there is no public one. Build yours (docs/installation.md), then IMAGE=REGISTRY/nodegate:0.1.0 sh $0}"
kubectl apply --server-side -f "${CALICO:-https://raw.githubusercontent.com/projectcalico/calico/v3.32.1/manifests/calico.yaml}"
cd "$(dirname "$0")"
kubectl apply -f calico-rbac-node-status-patch-role.yaml
sed "s#nodegate:0.1.0#$IMAGE#" cni-patcher-sidecar.yaml |
    kubectl -n kube-system patch daemonset calico-node --patch-file /dev/stdin
