#!/bin/sh
# Prints a Job for each node with the label $1 that has none yet.
#   ./job-per-node.sh example.com/pool=gpu | kubectl apply -f -
set -eu
label=${1:?name the label of the nodes, for example example.com/pool=gpu}
there=$(kubectl -n node-checks get jobs -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}')
for node in $(kubectl get nodes -l "$label" -o jsonpath='{.items[*].metadata.name}'); do
    if printf '%s\n' "$there" | grep -qx "nccl-$node"; then
        continue
    fi
    cat <<EOF
---
apiVersion: batch/v1
kind: Job
metadata:
  name: nccl-$node
  namespace: node-checks
spec:
  backoffLimit: 3
  template:
    metadata:
      labels:
        nodegate.dev/check: nccl
    spec:
      nodeName: $node
      restartPolicy: Never
      tolerations:
      - key: readiness.k8s.io/gpu-check
        operator: Exists
      containers:
      - name: nccl
        image: registry.example.com/nccl-tests:1.0
        command: [all_reduce_perf, -b, 1G, -e, 1G, -g, "8"]
EOF
done
