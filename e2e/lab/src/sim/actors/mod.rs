//! Those who act in the cluster beside Nodegate, one a file.
