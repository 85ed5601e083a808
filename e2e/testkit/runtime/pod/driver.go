package main

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Where the kubelet looks for sockets of plugins that want to be registered.
const registry = "/var/lib/kubelet/plugins_registry"

// runDriver is a CSI driver without volumes, and what registers it with the kubelet: the driver's own process and
// node-driver-registrar in one. Both sockets have the paths here that they have on the node.
func runDriver(name, node, socket string) error {
	driver := grpc.NewServer()
	csi.RegisterIdentityServer(driver, &identity{name: name})
	csi.RegisterNodeServer(driver, &nodeService{node: node})
	if err := listen(driver, socket); err != nil {
		return err
	}
	registrar := grpc.NewServer()
	registration.RegisterRegistrationServer(registrar, &plugin{info: &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              name,
		Endpoint:          socket,
		SupportedVersions: []string{"1.0.0"},
	}})
	if err := listen(registrar, filepath.Join(registry, name+"-reg.sock")); err != nil {
		return err
	}
	ended()
	registrar.Stop()
	driver.Stop()
	return nil
}

func listen(server *grpc.Server, socket string) error {
	// One that was killed leaves its socket behind.
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(listener) }()
	return nil
}

type identity struct {
	csi.UnimplementedIdentityServer
	name string
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.name, VendorVersion: "1"}, nil
}

func (*identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (*identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

type nodeService struct {
	csi.UnimplementedNodeServer
	node string
}

func (n *nodeService) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.node, MaxVolumesPerNode: 10}, nil
}

func (*nodeService) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

type plugin struct {
	registration.UnimplementedRegistrationServer
	info *registration.PluginInfo
}

func (p *plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return p.info, nil
}

func (*plugin) NotifyRegistrationStatus(context.Context, *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}
