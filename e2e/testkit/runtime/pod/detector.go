package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

const (
	// What a pod is given of its service account.
	account = "/var/run/secrets/kubernetes.io/serviceaccount"
	// How often the log is looked at.
	pace = 200 * time.Millisecond
	// How often conditions are written where nothing has changed, and tried again where that failed.
	heartbeat = 5 * time.Minute
	again     = time.Second
)

// deadlock is what the log says when docker hangs.
var deadlock = regexp.MustCompile(`task docker:\w+ blocked for more than \w+ seconds\.`)

// condition is of a node.
type condition struct {
	Type       string    `json:"type"`
	Status     string    `json:"status"`
	Heartbeat  time.Time `json:"lastHeartbeatTime"`
	Transition time.Time `json:"lastTransitionTime"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message"`
}

// detect does what Node Problem Detector does with its kernel monitor: each condition is False when it starts, and True once the log
// says so, until it is started again; it writes them when they turn, and every few minutes.
func detect(log string) error {
	server, err := inCluster()
	if err != nil {
		return err
	}
	now := time.Now()
	found := condition{
		Type: "KernelDeadlock", Status: "False", Transition: now,
		Reason: "KernelHasNoDeadlock", Message: "kernel has no deadlock",
	}
	// What was logged before is over.
	seen, err := size(log)
	if err != nil {
		return err
	}
	var due time.Time
	for ; ; time.Sleep(pace) {
		lines, err := from(log, seen)
		if err != nil {
			return err
		}
		seen += int64(len(lines))
		if line := deadlock.Find(lines); line != nil && found.Status == "False" {
			found.Status, found.Transition = "True", time.Now()
			found.Reason, found.Message = "DockerHung", string(line)
			due = time.Time{}
		}
		if time.Now().Before(due) {
			continue
		}
		found.Heartbeat = time.Now()
		due = found.Heartbeat.Add(heartbeat)
		if err := server.setCondition(os.Getenv("NODE_NAME"), found); err != nil {
			fmt.Fprintln(os.Stderr, "pod:", err)
			due = time.Now().Add(again)
		}
	}
}

func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// from is what a file has after so many bytes.
func from(path string, start int64) ([]byte, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil || int64(len(content)) < start {
		return nil, err
	}
	return content[start:], nil
}

// apiServer is how a pod reaches it.
type apiServer struct {
	url    string
	token  string
	client http.Client
}

func inCluster() (*apiServer, error) {
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("no certificate in ca.crt")
	}
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	return &apiServer{
		url:    "https://" + host,
		token:  string(token),
		client: http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: 10 * time.Second},
	}, nil
}

func (s *apiServer) setCondition(node string, set condition) error {
	status := map[string]any{"status": map[string]any{"conditions": []condition{set}}}
	body, err := json.Marshal(status)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPatch, s.url+"/api/v1/nodes/"+node+"/status", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("writing a condition: %s: %s", answer.Status, said)
	}
	return err
}
