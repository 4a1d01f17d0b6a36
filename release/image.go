package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The user of the image, the one that such images usually have, and where it keeps
// the archive.
const (
	imageUser = 65532
	imageData = "var/lib/oda"
)

// image builds the image for all platforms with ko, and saves it as an archive of the
// OCI layout.
//
// Ko takes its base image from a registry, and there is none for an image made from
// nothing. But it looks into its cache first, for an image that is named by its
// digest: that is where the base is put.
func (r *release) image(b *bill) error {
	base, err := r.base()
	if err != nil {
		return err
	}
	digest, err := base.Digest()
	if err != nil {
		return err
	}
	cache, built := filepath.Join(r.work, "ko"), filepath.Join(r.work, "image")
	if err := cacheBase(filepath.Join(cache, "img"), base); err != nil {
		return err
	}
	err = r.do([]string{
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "VERSION=" + r.versions.semver,
		"KOCACHE=" + cache, "KO_DEFAULTBASEIMAGE=scratch.invalid/oda@" + digest.String(), "KO_DOCKER_REPO=oda",
	}, r.ko, "build", "./cmd/oda", "--push=false", "--sbom=none", "--platform=all", "--oci-layout-path="+built,
		"--image-label=org.opencontainers.image.version="+r.versions.semver)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("oda_%s_image.tar", r.versions.semver)
	if err := r.saveImage(filepath.Join(r.out, name), built); err != nil {
		return err
	}
	b.ship(name, linux...)
	b.contains(name, b.roots)
	return nil
}

// base makes what the image has beside the program, for each platform.
func (r *release) base() (v1.ImageIndex, error) {
	licences, err := file("usr/share/doc/oda/THIRD-PARTY-LICENSES", 0o644, r.licences())
	if err != nil {
		return nil, err
	}
	own, err := file("usr/share/doc/oda/LICENSE", 0o644, filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	err = writeTar(&files, r.time, []entry{
		{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "oda:x:%d:%d::/%s:/\n", imageUser, imageUser, imageData)},
		{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "oda:x:%d:\n", imageUser)},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: rootCertificates()},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{name: imageData, mode: fs.ModeDir | 0o750, owner: imageUser},
		own, licences,
	})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range linux {
		image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		image, err = mutate.ConfigFile(image, &v1.ConfigFile{
			OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.time},
			RootFS: v1.RootFS{Type: "layers"},
			Config: v1.Config{
				User:         fmt.Sprintf("%d:%d", imageUser, imageUser),
				WorkingDir:   "/" + imageData,
				Env:          []string{"ODA_LISTEN=:8080", "ODA_DB=sqlite:/" + imageData + "/archive.db"},
				Volumes:      map[string]struct{}{"/" + imageData: {}},
				ExposedPorts: map[string]struct{}{"8080/tcp": {}},
				Labels: map[string]string{
					"org.opencontainers.image.title":    "oda",
					"org.opencontainers.image.licenses": "BSD-3-Clause",
				},
			},
		})
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "oda release"},
		})
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	return index, nil
}

// rootCertificates returns Mozilla's root certificates, pinned as a module is: those of
// the machine would differ from one to the next, and might be its own. Roots that are
// trusted under a condition are left out, since a file cannot say so.
func rootCertificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}

// cacheBase puts an index and its images into a cache of ko.
func cacheBase(at string, base v1.ImageIndex) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	cache, err := layout.Write(at, empty.Index)
	if err != nil {
		return err
	}
	manifest, err := base.IndexManifest()
	if err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		image, err := base.Image(m.Digest)
		if err != nil {
			return err
		}
		if err := cache.AppendImage(image); err != nil {
			return err
		}
	}
	return cache.AppendIndex(base)
}

// saveImage saves the index that ko has built, under the name that docker and others
// give to an image when they load it.
func (r *release) saveImage(to, built string) error {
	from, err := layout.ImageIndexFromPath(built)
	if err != nil {
		return err
	}
	manifest, err := from.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("ko has built %d images instead of one for all platforms", len(manifest.Manifests))
	}
	index, err := from.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	named := filepath.Join(r.work, "named")
	path, err := layout.Write(named, empty.Index)
	if err != nil {
		return err
	}
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          "docker.io/library/oda:" + r.versions.image,
		"org.opencontainers.image.ref.name": r.versions.image,
	}))
	if err != nil {
		return err
	}
	entries, err := tree("", named)
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := writeTar(f, r.time, entries); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
