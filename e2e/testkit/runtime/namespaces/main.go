// Command namespaces runs a command as root of a machine of its own: with namespaces for users, mounts, processes, network,
// IPC and host name, which need no root outside, and are gone with it. Without a command it tells whether that can be done.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// Set for whatever runs inside.
const inside = "KUBE_REALNODE"

func main() {
	// A process is killed with the thread that started it.
	runtime.LockOSThread()
	var code int
	var err error
	switch os.Getenv(inside) {
	case "to probe":
	case "to set up":
		code, err = runInside(os.Args[1:])
	default:
		code, err = enter(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// enter runs this program again, in namespaces of its own.
func enter(arguments []string) (int, error) {
	if err := allowed(); err != nil {
		return 0, err
	}
	again := inNamespaces(all(), arguments...)
	again.Env = append(os.Environ(), inside+"=to set up")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := again.Start(); err != nil {
		return 0, fmt.Errorf("entering the namespaces: %w", err)
	}
	// A terminal's Ctrl-C reaches the command, too, which decides when to end.
	go pass(again.Process, syscall.SIGTERM)
	return result(again.Wait())
}

// runInside is process 1 of the new namespaces.
func runInside(arguments []string) (int, error) {
	if err := setUp(); err != nil {
		return 0, err
	}
	if len(arguments) == 0 {
		return 0, nil
	}
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Env = append(os.Environ(), inside+"=inside")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		return 0, err
	}
	go pass(command.Process, syscall.SIGTERM)
	return reap(command.Process.Pid)
}

// pass hands signals on, and keeps those of a terminal from ending this process first.
func pass(process *os.Process, handedOn os.Signal) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, handedOn, syscall.SIGINT)
	for received := range signals {
		if received == handedOn {
			_ = process.Signal(received)
		}
	}
}

// reap waits for every process that ends, as process 1 has to, until this one does.
func reap(main int) (int, error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for the command: %w", err)
		case pid == main && status.Signaled():
			return 128 + int(status.Signal()), nil
		case pid == main:
			return status.ExitStatus(), nil
		}
	}
}

func result(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}
