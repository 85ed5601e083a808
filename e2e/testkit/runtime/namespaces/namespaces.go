package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// A namespace, and the sysctl that says how many of them users may make.
type namespace struct {
	name, sysctl string
	flag         uintptr
}

// Every other namespace belongs to the first, in which a user is root.
var namespaces = []namespace{
	{"user", "user.max_user_namespaces", syscall.CLONE_NEWUSER},
	{"mount", "user.max_mnt_namespaces", syscall.CLONE_NEWNS},
	{"process", "user.max_pid_namespaces", syscall.CLONE_NEWPID},
	{"network", "user.max_net_namespaces", syscall.CLONE_NEWNET},
	{"IPC", "user.max_ipc_namespaces", syscall.CLONE_NEWIPC},
	{"host name", "user.max_uts_namespaces", syscall.CLONE_NEWUTS},
}

func all() uintptr {
	flags := uintptr(0)
	for _, namespace := range namespaces {
		flags |= namespace.flag
	}
	return flags
}

// inNamespaces is this program in new namespaces, where the user is root. Nobody else is anybody there, unless this is root, who
// may hand on the users of the machine.
func inNamespaces(flags uintptr, arguments ...string) *exec.Cmd {
	users := 1
	if os.Getuid() == 0 && hasUsers("/proc/self/uid_map") && hasUsers("/proc/self/gid_map") {
		users = handedOn
	}
	command := exec.Command("/proc/self/exe", arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 flags,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: users}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: users}},
		GidMappingsEnableSetgroups: users > 1,
		Pdeathsig:                  syscall.SIGKILL,
	}
	return command
}

// How many users root hands on.
const handedOn = 1 << 16

// hasUsers is false where root is so in a namespace alone, of which it may hand on but itself.
func hasUsers(file string) bool {
	content, _ := os.ReadFile(file)
	var inside, outside, count uint64
	_, err := fmt.Sscan(string(content), &inside, &outside, &count)
	return err == nil && inside == 0 && count >= handedOn
}

// allowed tells which kind of namespace may not be made here, and what to do about it.
func allowed() error {
	for _, namespace := range namespaces {
		probe := inNamespaces(syscall.CLONE_NEWUSER | namespace.flag)
		probe.Env = []string{inside + "=to probe"}
		if err := probe.Run(); err != nil {
			return fmt.Errorf("this machine refuses a %s namespace: %w\n%s", namespace.name, err, advice(namespace, err))
		}
	}
	return nil
}

func advice(namespace namespace, err error) string {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Sprintf("as root: sysctl -w %s=10000", namespace.sysctl)
	}
	for _, sysctl := range []struct{ name, refuses, allows string }{
		{"kernel.unprivileged_userns_clone", "0", "1"},
		{"user.max_user_namespaces", "0", "10000"},
		restriction,
	} {
		if read(sysctl.name) == sysctl.refuses {
			return fmt.Sprintf("as root: sysctl -w %s=%s", sysctl.name, sysctl.allows)
		}
	}
	return "in a container, its seccomp profile may be what refuses (docker run --security-opt seccomp=unconfined)"
}

// restriction lets namespaces be made, but nothing be done in them.
var restriction = struct{ name, refuses, allows string }{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"}

func read(sysctl string) string {
	content, _ := os.ReadFile("/proc/sys/" + strings.ReplaceAll(sysctl, ".", "/"))
	return strings.TrimSpace(string(content))
}
