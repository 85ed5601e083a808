// Command pod is what every container of the tests runs: it does what its first argument says.
//
//	pause                                 nothing, but reaps; so does a pod's sandbox, which has no argument
//	cni BIN CONF                          puts the plugins of its image into BIN and $CNI_CONF into CONF
//	serve FILE                            answers over HTTP, gRPC, TCP and sockets; well while FILE is there
//	check FILE                            ends well if FILE is there
//	csi NAME NODE SOCKET                  a CSI driver that registers with the kubelet
//	devices RESOURCE COUNT                a device plugin that registers with the kubelet
//	detect LOG                            writes a condition of the node when the log speaks of a problem
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return pause()
	}
	roles := map[string]struct {
		takes int
		run   func(arguments []string) error
	}{
		"pause":   {0, func([]string) error { return pause() }},
		"cni":     {2, func(a []string) error { return installNetwork(a[0], a[1]) }},
		"serve":   {1, func(a []string) error { return serve(a[0]) }},
		"check":   {1, func(a []string) error { return check(a[0]) }},
		"csi":     {3, func(a []string) error { return runDriver(a[0], a[1], a[2]) }},
		"devices": {2, func(a []string) error { return offerDevices(a[0], a[1]) }},
		"detect":  {1, func(a []string) error { return detect(a[0]) }},
	}
	role, known := roles[arguments[0]]
	if !known || len(arguments) != role.takes+1 {
		return fmt.Errorf("%q cannot be done", arguments)
	}
	return role.run(arguments[1:])
}

// ended waits until it is asked to end.
func ended() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
}

// pause reaps what is left to it, until it is asked to end.
func pause() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			break
		}
		for {
			if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
				break
			}
		}
	}
	return nil
}

func check(file string) error {
	_, err := os.Stat(file)
	return err
}
