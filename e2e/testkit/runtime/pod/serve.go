package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Where it answers.
const (
	httpAddress = ":8080"
	grpcAddress = ":8081"
	// Beside the file.
	httpSocket = "http.sock"
)

// serve answers in every way that a probe or a reporter asks: well while the file is there.
func serve(file string) error {
	failed := make(chan error)
	handler := http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if check(file) != nil {
			http.Error(answer, "not ready", http.StatusServiceUnavailable)
		}
	})
	socket := filepath.Join(filepath.Dir(file), httpSocket)
	_ = os.Remove(socket)
	for _, where := range []struct{ network, address string }{{"tcp", httpAddress}, {"unix", socket}} {
		listener, err := net.Listen(where.network, where.address)
		if err != nil {
			return err
		}
		go func() { failed <- http.Serve(listener, handler) }()
	}
	listener, err := net.Listen("tcp", grpcAddress)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	health.RegisterHealthServer(server, &byFile{file: file})
	go func() { failed <- server.Serve(listener) }()
	go func() {
		ended()
		failed <- nil
	}()
	return <-failed
}

// byFile is healthy while its file is there.
type byFile struct {
	health.UnimplementedHealthServer
	file string
}

func (h *byFile) Check(_ context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	switch err := check(h.file); {
	case err == nil:
		return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
	case errors.Is(err, os.ErrNotExist):
		return &health.HealthCheckResponse{Status: health.HealthCheckResponse_NOT_SERVING}, nil
	default:
		return nil, status.Error(codes.Internal, err.Error())
	}
}
