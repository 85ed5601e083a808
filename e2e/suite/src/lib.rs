//! Nodegate's tests on a real Kubernetes control plane. Each file or folder under `tests/` is a binary of its own; here is
//! what several of them have in common.
