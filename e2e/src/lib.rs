//! A real Kubernetes control plane for tests, the demo and the benchmark.
