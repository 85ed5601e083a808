// Command image writes a container image as an archive that containerd imports, without a container engine: one layer with files.
//
//	image OUT NAME:TAG ENTRYPOINT USER PATH_IN_IMAGE=FILE...
//
// USER is who runs it, such as 65532:65532; root where it is empty.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 4 {
		return fmt.Errorf("too few arguments: %q", arguments)
	}
	layer, err := layerOf(arguments[4:])
	if err != nil {
		return err
	}
	archive := archive{}
	platform := v1.Platform{Architecture: runtime.GOARCH, OS: "linux"}
	configuration, err := archive.add(v1.MediaTypeImageConfig, v1.Image{
		Platform: platform,
		Config:   v1.ImageConfig{Entrypoint: []string{arguments[2]}, User: arguments[3], WorkingDir: "/"},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer)}},
	})
	if err != nil {
		return err
	}
	manifest, err := archive.add(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    configuration,
		Layers:    []v1.Descriptor{archive.blob(v1.MediaTypeImageLayer, layer)},
	})
	if err != nil {
		return err
	}
	manifest.Platform = &platform
	manifest.Annotations = map[string]string{"io.containerd.image.name": arguments[1]}
	index, err := json.Marshal(v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{manifest},
	})
	if err != nil {
		return err
	}
	layout, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return err
	}
	files := append(archive.files, file{v1.ImageIndexFile, index, 0o644}, file{v1.ImageLayoutFile, layout, 0o644})
	content, err := pack(files)
	if err != nil {
		return err
	}
	return os.WriteFile(arguments[0], content, 0o644)
}

type file struct {
	name    string
	content []byte
	mode    int64
}

type archive struct {
	files []file
}

func (a *archive) add(mediaType string, value any) (v1.Descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return a.blob(mediaType, content), nil
}

func (a *archive) blob(mediaType string, content []byte) v1.Descriptor {
	name := fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(content))
	a.files = append(a.files, file{name, content, 0o644})
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
}

// layerOf has these files, and a folder for what containers write.
func layerOf(paths []string) ([]byte, error) {
	files := []file{{"tmp/", nil, 0o1777}}
	for _, pair := range paths {
		in, from, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("%q is no PATH_IN_IMAGE=FILE", pair)
		}
		content, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files = append(files, file{strings.TrimPrefix(path.Clean(in), "/"), content, 0o755})
	}
	return pack(files)
}

func pack(files []file) ([]byte, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(file.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(file.content); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return packed.Bytes(), err
}
