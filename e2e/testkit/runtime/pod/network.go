package main

import (
	"os"
	"path/filepath"
)

// Where the image has the plugins.
const plugins = "/plugins"

// installed is there once the network is.
const installed = "/tmp/installed"

// installNetwork does what a network's DaemonSet does on a node: it brings the plugins and their configuration, and stays.
func installNetwork(binaries, configuration string) error {
	entries, err := os.ReadDir(plugins)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(plugins, entry.Name()))
		if err != nil {
			return err
		}
		if err := replace(filepath.Join(binaries, entry.Name()), content, 0o755); err != nil {
			return err
		}
	}
	if err := replace(configuration, []byte(os.Getenv("CNI_CONF")), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(installed, nil, 0o644); err != nil {
		return err
	}
	ended()
	return nil
}

// replace never leaves half a file, nor writes to one that is being run.
func replace(path string, content []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", content, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
