// Command hollow is Kubernetes' own kubelet around a container runtime that is played: as kubemark's hollow nodes, but with the
// kubelet's own prober, which kubemark leaves out.
package main

import (
	"flag"
	"log"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	core "k8s.io/api/core/v1"
	server "k8s.io/apiserver/pkg/server"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	remote "k8s.io/cri-client/pkg"
	fakeremote "k8s.io/cri-client/pkg/fake"
	cadvisor "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

const patience = 15 * time.Second

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	name := flag.String("name", "", "the node's name")
	taint := flag.String("taint", "", "the key of the taint that it registers with")
	flag.Parse()
	if err := run(*kubeconfig, *name, *taint); err != nil {
		log.Fatalln("hollow:", err)
	}
}

func run(kubeconfig, name, taint string) error {
	ctx := server.SetupSignalContext()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "hollow"
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	endpoint, err := fakeremote.GenerateEndpoint()
	if err != nil {
		return err
	}
	played := fakeremote.NewFakeRemoteRuntime()
	if err := played.Start(endpoint); err != nil {
		return err
	}
	runtime, err := remote.NewRemoteRuntimeService(ctx, endpoint, patience, noop.NewTracerProvider(), false)
	if err != nil {
		return err
	}
	flags, configuration := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName:           name,
		MaxPods:            110,
		RegisterWithTaints: []core.Taint{{Key: taint, Effect: core.TaintEffectNoSchedule}},
	})
	configuration.EnableServer = false
	kubelet := kubemark.NewHollowKubelet(flags, configuration, client, client, &cadvisor.Fake{NodeName: name},
		played.ImageService, runtime, cm.NewStubContainerManager())
	// Where there is none, the kubelet makes its own.
	kubelet.KubeletDeps.ProbeManager = nil
	kubelet.Run(ctx)
	return nil
}
