// Command runcwrap is called in place of runc: it takes out of a container's specification what cannot be had here, and goes on
// as the runc of the PATH. That is the seccomp profile, for which runc would have to be linked with libseccomp, and what the one
// user of a user namespace may not set: cgroups, and a group for terminals.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "runcwrap:", err)
		os.Exit(1)
	}
}

func run() error {
	if at := slices.Index(os.Args, "--bundle"); at > 0 && at+1 < len(os.Args) {
		if err := rewrite(filepath.Join(os.Args[at+1], "config.json")); err != nil {
			return err
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return syscall.Exec(runc, append([]string{runc}, os.Args[1:]...), os.Environ())
}

// object keeps what it does not know as it is.
type object map[string]json.RawMessage

func rewrite(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var specification, linux object
	if err := json.Unmarshal(content, &specification); err != nil {
		return err
	}
	if err := json.Unmarshal(specification["linux"], &linux); err != nil {
		return err
	}
	for _, field := range []string{"seccomp", "cgroupsPath", "resources"} {
		delete(linux, field)
	}
	if specification["linux"], err = json.Marshal(linux); err != nil {
		return err
	}
	mounts := strings.ReplaceAll(string(specification["mounts"]), `,"gid=5"`, "")
	specification["mounts"] = json.RawMessage(mounts)
	if content, err = json.Marshal(specification); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
