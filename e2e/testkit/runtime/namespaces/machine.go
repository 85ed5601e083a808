package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	hostName = "node-1"
	// The address of the machine, on a bridge that leads nowhere.
	bridge  = "node0"
	address = "10.99.0.1/24"
	// Where clients in pods look for the API server. There is no kube-proxy: the machine has that address, too.
	service = "10.0.0.1/32"
	// A file in place of each of the kernel's that is not this machine's alone.
	kernel = "/run/kernel"
)

// What a kubelet sets, as it wants it: it would set it for the whole machine, where the user is the machine's root. And the boot ID,
// which changes with each start.
var kernels = map[string]string{
	"kernel/keys/root_maxbytes": "25000000",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/random/boot_id":     "00000000-0000-4000-8000-000000000001",
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
}

// Folders in which a node writes: what the machine has there can be read, and what is written is gone with the namespaces.
var written = []string{"/etc", "/opt", "/var/lib", "/var/log"}

// Folders that a node begins without, even where the machine is one, too. They are no overlays: others are made of what is in them.
var empty = []string{"/etc/cni", "/opt/cni", "/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers"}

// Folders that are there before anything runs.
var made = []string{"/etc/cni/net.d", "/opt/cni/bin"}

// setUp makes these namespaces a machine that a kubelet can run on.
func setUp() error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"mounting its file systems", mounts},
		{"hiding what is the whole machine's", ownKernel},
		{"naming it", func() error { return unix.Sethostname([]byte(hostName)) }},
		{"making its network", network},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("a machine in namespaces: %s: %w%s", step.name, err, explanation(err))
		}
	}
	return nil
}

func explanation(err error) string {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return ""
	}
	if read(restriction.name) == restriction.refuses {
		return fmt.Sprintf("\nas root: sysctl -w %s=%s", restriction.name, restriction.allows)
	}
	return "\nin a container, what is masked of its /proc and /sys may be what refuses (docker run --security-opt systempaths=unconfined)"
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("%s on %s: %w", kind, target, err)
	}
	return nil
}

func mounts() error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, folder := range written {
		name := filepath.Join("/run/written", strings.ReplaceAll(folder, "/", "-"))
		upper, work := filepath.Join(name, "upper"), filepath.Join(name, "work")
		for _, path := range []string{upper, work} {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", folder, upper, work)
		if err := mount("overlay", folder, "overlay", 0, options); err != nil {
			return err
		}
	}
	for _, folder := range empty {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := mount("tmpfs", folder, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
	}
	for _, folder := range made {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := readOnly("/sys/fs/cgroup"); err != nil {
		return err
	}
	// What a pod mounts with propagation has to be seen here.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

// readOnly keeps a folder and all that is mounted in it from being written to. The machine's root could make cgroups there, which
// would outlive the namespaces.
func readOnly(folder string) error {
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, folder, unix.AT_RECURSIVE, attributes); err != nil {
		return fmt.Errorf("making %s read-only: %w", folder, err)
	}
	return nil
}

// ownKernel puts files in place of the kernel's.
func ownKernel() error {
	for name, value := range kernels {
		file := filepath.Join(kernel, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, filepath.Join("/proc/sys", name), "file", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func network() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridge
	node := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(node); err != nil {
		return fmt.Errorf("a bridge: %w", err)
	}
	for _, has := range []struct {
		link    netlink.Link
		address string
	}{{loopback, service}, {node, address}} {
		parsed, err := netlink.ParseAddr(has.address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(has.link, parsed); err != nil {
			return fmt.Errorf("address %s: %w", has.address, err)
		}
		if err := netlink.LinkSetUp(has.link); err != nil {
			return err
		}
	}
	everywhere := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	route := &netlink.Route{LinkIndex: node.Attrs().Index, Dst: everywhere, Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("the default route: %w", err)
	}
	// Pods send from their own network through this one.
	forward := "/proc/sys/net/ipv4/ip_forward"
	if err := os.WriteFile(forward, []byte("1"), 0o644); err != nil && !errors.Is(err, unix.EROFS) {
		return err
	}
	return nil
}
