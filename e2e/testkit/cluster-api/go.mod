// Cluster API's CustomResourceDefinitions, for tests: nothing is built from this module, its files are read where Go keeps
// them. `go mod tidy` would find nothing that is imported; change the version by hand and run `go mod download`.
module nodegate/e2e/cluster-api

go 1.26.0

require sigs.k8s.io/cluster-api v1.14.2
