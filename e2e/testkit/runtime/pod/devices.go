package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// offerDevices is a device plugin: the kubelet has so many of a resource to give away while it runs. The devices are nothing.
func offerDevices(resource, count string) error {
	number, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	socket := strings.ReplaceAll(resource, "/", "-") + ".sock"
	server := grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(server, &devices{count: number})
	if err := listen(server, filepath.Join(v1beta1.DevicePluginPath, socket)); err != nil {
		return err
	}
	kubelet, err := grpc.NewClient("unix://"+v1beta1.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	request := &v1beta1.RegisterRequest{Version: v1beta1.Version, Endpoint: socket, ResourceName: resource}
	if _, err := v1beta1.NewRegistrationClient(kubelet).Register(context.Background(), request); err != nil {
		return err
	}
	ended()
	server.Stop()
	return nil
}

type devices struct {
	v1beta1.UnimplementedDevicePluginServer
	count int
}

func (*devices) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &v1beta1.DevicePluginOptions{}, nil
}

func (d *devices) ListAndWatch(_ *v1beta1.Empty, stream grpc.ServerStreamingServer[v1beta1.ListAndWatchResponse]) error {
	list := &v1beta1.ListAndWatchResponse{}
	for number := range d.count {
		list.Devices = append(list.Devices, &v1beta1.Device{ID: fmt.Sprint(number), Health: v1beta1.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	// Nothing changes as long as anybody listens.
	<-stream.Context().Done()
	return nil
}

func (*devices) Allocate(_ context.Context, request *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	response := &v1beta1.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &v1beta1.ContainerAllocateResponse{})
	}
	return response, nil
}
