// Makes the images of a release without a container engine: for several architectures in an OCI layout, which `push` then takes to
// a registry. What is made depends on its input and SOURCE_DATE_EPOCH alone: the same again is the same, bit for bit.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const usage = `usage:
  release image --out FOLDER --version V [--revision R] [--source URL] ARCH=FOLDER...
        An OCI layout with an image for each architecture (amd64, arm64), of the binaries in a folder. Prints its digest.
  release push [--plain-http] FOLDER REPOSITORY:TAG [BILL.cdx.json...]
        Takes the images to a registry, with the credentials of ~/.docker/config.json, and attaches bills of materials (CycloneDX) to
        them. Prints where they are.
  release save --out FILE.tar FOLDER REPOSITORY:TAG ARCH
        The image of one architecture as an archive that container engines load.

Dates are SOURCE_DATE_EPOCH, or 1970.
`

// cycloneDX is the type of a bill of materials, as its name at IANA.
const cycloneDX = "application/vnd.cyclonedx+json"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) > 0 {
		switch arguments[0] {
		case "image":
			return images(arguments[1:])
		case "push":
			return push(arguments[1:])
		case "save":
			return save(arguments[1:])
		}
	}
	return errors.New(usage)
}

// file is one entry of a layer.
type file struct {
	name    string
	mode    int64
	content []byte
	// link is what the entry is a link to, if it is one.
	link string
}

// packed is the tar archive of these files, and of the folders that they are in.
func packed(files []file) ([]byte, error) {
	date, err := date()
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	known := map[string]bool{".": true}
	var folders func(string) error
	folders = func(folder string) error {
		if known[folder] {
			return nil
		}
		known[folder] = true
		if err := folders(path.Dir(folder)); err != nil {
			return err
		}
		return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: date})
	}
	for _, it := range files {
		if err := folders(path.Dir(it.name)); err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: it.name, Mode: it.mode, Size: int64(len(it.content)), ModTime: date}
		if it.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, it.link
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(it.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func images(arguments []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("out", "", "the folder of the layout")
	version := flags.String("version", "", "the version")
	revision := flags.String("revision", "", "the commit")
	source := flags.String("source", "", "where the source is")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	labels := map[string]string{
		"org.opencontainers.image.title":       "Nodegate",
		"org.opencontainers.image.description": "Keeps pods off Kubernetes nodes until everything the node needs is really there",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     *version,
	}
	for label, value := range map[string]string{"revision": *revision, "source": *source} {
		if value != "" {
			labels["org.opencontainers.image."+label] = value
		}
	}
	var all v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, argument := range flags.Args() {
		architecture, folder, found := strings.Cut(argument, "=")
		if !found {
			return fmt.Errorf("%q is not ARCH=FOLDER", argument)
		}
		image, err := image(architecture, folder, labels)
		if err != nil {
			return err
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	all = mutate.Annotations(all, labels).(v1.ImageIndex)
	if err := os.RemoveAll(*out); err != nil {
		return err
	}
	folder, err := layout.Write(*out, empty.Index)
	if err != nil {
		return err
	}
	if err := folder.AppendIndex(all); err != nil {
		return err
	}
	digest, err := all.Digest()
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}

// image is the image of one architecture: the binaries in a folder, certificate authorities, and nothing else.
func image(architecture, folder string, labels map[string]string) (v1.Image, error) {
	files := []file{{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()}}
	for _, name := range []string{"nodegate-controller", "nodegate-reporter"} {
		content, err := os.ReadFile(path.Join(folder, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, mode: 0o755, content: content})
	}
	// As a Deployment of the Node Readiness Controller starts it.
	files = append(files, file{name: "manager", mode: 0o777, link: "nodegate-controller"})
	packed, err := packed(files)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	date, err := date()
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{
		Created:   v1.Time{Time: date},
		CreatedBy: "nodegate, and the certificate authorities that Mozilla trusts",
	}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, with(image, architecture, labels, date))
}

// with is the configuration of an image, made complete.
func with(image v1.Image, architecture string, labels map[string]string, date time.Time) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		config = &v1.ConfigFile{}
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: date}
	config.Config.User = "65532:65532"
	config.Config.Entrypoint = []string{"/nodegate-controller"}
	config.Config.Labels = labels
	return config
}

// authorities are those that Mozilla trusts for servers without further conditions, as the Go project publishes them.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return all.Bytes()
}

func push(arguments []string) error {
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	plain := flags.Bool("plain-http", false, "the registry has no TLS")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New(usage)
	}
	var options []name.Option
	if *plain {
		options = append(options, name.Insecure)
	}
	to, err := name.NewTag(flags.Arg(1), options...)
	if err != nil {
		return err
	}
	all, err := made(flags.Arg(0))
	if err != nil {
		return err
	}
	keychain := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.WriteIndex(to, all, keychain); err != nil {
		return err
	}
	subject, err := partial.Descriptor(all)
	if err != nil {
		return err
	}
	for _, file := range flags.Args()[2:] {
		bill, err := attached(file, *subject)
		if err != nil {
			return err
		}
		digest, err := bill.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(to.Context().Digest(digest.String()), bill, keychain); err != nil {
			return err
		}
	}
	fmt.Printf("%s@%s\n", to, subject.Digest)
	return nil
}

// attached is a bill of materials as a referrer of an image: registries list it with what refers to that digest.
func attached(file string, subject v1.Descriptor) (v1.Image, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), cycloneDX)
	bill, err := mutate.AppendLayers(base, static.NewLayer(content, cycloneDX))
	if err != nil {
		return nil, err
	}
	title := map[string]string{"org.opencontainers.image.title": path.Base(file)}
	return mutate.Subject(mutate.Annotations(bill, title).(v1.Image), subject).(v1.Image), nil
}

func save(arguments []string) error {
	flags := flag.NewFlagSet("save", flag.ContinueOnError)
	out := flags.String("out", "", "the archive")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() != 3 {
		return errors.New(usage)
	}
	tag, err := name.NewTag(flags.Arg(1))
	if err != nil {
		return err
	}
	all, err := made(flags.Arg(0))
	if err != nil {
		return err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return err
	}
	for _, it := range manifest.Manifests {
		if it.Platform.Architecture != flags.Arg(2) {
			continue
		}
		image, err := all.Image(it.Digest)
		if err != nil {
			return err
		}
		return tarball.WriteToFile(*out, tag, image)
	}
	return fmt.Errorf("%s has no image for %s", flags.Arg(0), flags.Arg(2))
}

// made is what `image` has put into a folder.
func made(folder string) (v1.ImageIndex, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, not one", folder, len(manifest.Manifests))
	}
	return index.ImageIndex(manifest.Manifests[0].Digest)
}

// date is what everything is dated by.
func date() (time.Time, error) {
	seconds := int64(0)
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		parsed, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		seconds = parsed
	}
	return time.Unix(seconds, 0).UTC(), nil
}
