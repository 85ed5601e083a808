// Prometheus Operator's CustomResourceDefinitions, for tests: nothing is built from this module, its files are read where Go
// keeps them. `go mod tidy` would find nothing that is imported; change the version by hand and run `go mod download`.
module nodegate/e2e/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
