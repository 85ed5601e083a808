// Command cert-manager runs what cert-manager needs to issue certificates from self-signed Issuers and to hand their CA to
// webhook configurations: its own controllers, against the cluster of $KUBECONFIG, in one process. Its published module has
// them, but not the programs that they are shipped in.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(klog.Background())
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context, *errgroup.Group) error{issue, inject} {
		if err := part(ctx, group); err != nil {
			fail(err)
		}
	}
	if err := group.Wait(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "cert-manager:", err)
	os.Exit(1)
}

// issue runs the controllers that the imports above have registered.
func issue(ctx context.Context, group *errgroup.Group) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: os.Getenv("KUBECONFIG"),
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return err
	}
	for name, create := range controller.Known() {
		loop, err := create(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		group.Go(func() error { return loop.Run(1, ctx) })
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

// inject runs what writes CAs into webhook configurations.
func inject(ctx context.Context, group *errgroup.Group) error {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, api.AddToScheme} {
		if err := add(types); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// It applies CAs in the name that it tells of itself here.
	config = util.RestConfigWithUserAgent(config, "cainjector")
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: types,
		// It watches the metadata of Secrets alone, and reads their data from the API server.
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor:        map[string]bool{cainjector.ValidatingWebhookConfigurationName: true},
	})
	if err != nil {
		return err
	}
	group.Go(func() error { return manager.Start(ctx) })
	return nil
}
