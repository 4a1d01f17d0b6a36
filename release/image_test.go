package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// images returns the images of the release by platform.
func images(t *testing.T) map[platform]v1.Image {
	t.Helper()
	folder, v := dist(t)
	at := t.TempDir()
	f := have(os.Open(filepath.Join(folder, fmt.Sprintf("oda_%s_image.tar", v.semver))))(t)
	defer f.Close()
	unpack(t, f, at, false)
	all := have(layout.ImageIndexFromPath(at))(t)
	manifest := have(all.IndexManifest())(t)
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != v.image {
		t.Fatalf("the archive has %+v, want one image named %s", manifest.Manifests, v.image)
	}
	index := have(all.ImageIndex(manifest.Manifests[0].Digest))(t)
	manifest = have(index.IndexManifest())(t)
	found := map[platform]v1.Image{}
	for _, m := range manifest.Manifests {
		found[platform{m.Platform.OS, m.Platform.Architecture}] = have(index.Image(m.Digest))(t)
	}
	return found
}

// unpack unpacks a tar archive into a folder, with its owners if it should.
func unpack(t *testing.T, from io.Reader, to string, owners bool) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		path := filepath.Join(to, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644))
			}
		}
		if err == nil && owners {
			err = os.Lchown(path, header.Uid, header.Gid)
		}
		if err == nil {
			err = os.Chmod(path, header.FileInfo().Mode())
		}
		must(t, err)
	}
}

// contents lists the files of an image, with mode and owner.
func contents(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	files := map[string]string{}
	for r := tar.NewReader(mutate.Extract(image)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		files[strings.Trim(header.Name, "/")] = fmt.Sprintf("%s %d:%d", header.FileInfo().Mode(), header.Uid, header.Gid)
	}
}

func TestTheImageIsMadeFromNothing(t *testing.T) {
	found := images(t)
	if len(found) != len(linux) {
		t.Fatalf("there are %d images, want one for each of %v", len(found), linux)
	}
	folder, v := dist(t)
	for p, image := range found {
		config := have(image.ConfigFile())(t)
		if config.OS != p.os || config.Architecture != p.arch {
			t.Errorf("the image of %s is for %s/%s", p, config.OS, config.Architecture)
		}
		want := v1.Config{
			User: "65532:65532", WorkingDir: "/var/lib/oda", Entrypoint: []string{"/ko-app/oda"},
			Env:          []string{"ODA_LISTEN=:8080", "ODA_DB=sqlite:/var/lib/oda/archive.db", "PATH=/ko-app", "KO_DATA_PATH=/var/run/ko"},
			Volumes:      map[string]struct{}{"/var/lib/oda": {}},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}},
			Labels: map[string]string{
				"org.opencontainers.image.title": "oda", "org.opencontainers.image.licenses": "BSD-3-Clause",
				"org.opencontainers.image.version": v.semver,
			},
		}
		if diff := cmp.Diff(want, config.Config); diff != "" {
			t.Errorf("%s: -want +got\n%s", p, diff)
		}
		// No shell, no library, nothing that was not put there; and nothing but its data
		// belongs to the user.
		files := contents(t, image)
		wanted := map[string]string{
			"etc/passwd":                             "-rw-r--r-- 0:0",
			"etc/group":                              "-rw-r--r-- 0:0",
			"etc/ssl/certs/ca-certificates.crt":      "-rw-r--r-- 0:0",
			"tmp":                                    "dtrwxrwxrwx 0:0",
			"usr/share/doc/oda/LICENSE":              "-rw-r--r-- 0:0",
			"usr/share/doc/oda/THIRD-PARTY-LICENSES": "-rw-r--r-- 0:0",
			"var":                                    "dr-xr-xr-x 0:0",
			"var/lib/oda":                            "drwxr-x--- 65532:65532",
			"ko-app":                                 "dr-xr-xr-x 0:0",
			"ko-app/oda":                             "-r-xr-xr-x 0:0",
			"var/run":                                "dr-xr-xr-x 0:0",
			"var/run/ko":                             "dr-xr-xr-x 0:0",
		}
		if diff := cmp.Diff(wanted, files); diff != "" {
			t.Errorf("%s: -want +got\n%s", p, diff)
		}
		// The program is the one of the archive for this platform.
		var program []byte
		for r := tar.NewReader(mutate.Extract(image)); program == nil; {
			header := have(r.Next())(t)
			if header.Name == "ko-app/oda" || header.Name == "/ko-app/oda" {
				program = have(io.ReadAll(r))(t)
			}
		}
		packed := unpacked(t, filepath.Join(folder, fmt.Sprintf("oda_%s_%s_%s.tar.gz", v.semver, p.os, p.arch)))["oda"]
		if sha256.Sum256(program) != sha256.Sum256(packed) {
			t.Errorf("%s: the program in the image is not the one in the archive", p)
		}
	}
}

// jail is the file system of the image for this machine, to run programs in.
type jail struct {
	root   string
	config v1.Config
}

// unpackImage unpacks the image of this machine, as a container runtime would.
func unpackImage(t *testing.T) jail {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may run a program in another root directory")
	}
	image, ok := images(t)[platform{"linux", runtime.GOARCH}]
	if !ok {
		t.Skipf("there is no image for %s", runtime.GOARCH)
	}
	config := have(image.ConfigFile())(t)
	j := jail{t.TempDir(), config.Config}
	must(t, os.Chmod(j.root, 0o755))
	unpack(t, mutate.Extract(image), j.root, true)
	return j
}

// run starts the image with arguments.
func (j jail) run(t *testing.T, args ...string) *service {
	t.Helper()
	return start(t, &command{
		root: j.root, user: imageUser, group: imageUser, dir: j.config.WorkingDir, env: j.config.Env, args: slices.Concat(j.config.Entrypoint, args),
	})
}

func TestTheImageRuns(t *testing.T) {
	j := unpackImage(t)

	// On all addresses, as the image wants, it must know its callers.
	if refused := j.run(t, "serve"); refused.wait() == nil || !strings.Contains(refused.log(), "no way to know who is calling") {
		t.Errorf("the image serves everybody:\n%s", refused.log())
	}

	s := j.run(t, "serve", "--listen=127.0.0.1:0", "--log-format=json")
	s.ready(t)
	stored := s.request(t, "POST", "/api/v1/prjs", `{"name": "in a container"}`, http.StatusOK)
	// The image has no zone data but its own.
	s.request(t, "GET", "/api/v1/night?date=2026-03-01&zone=Africa/Johannesburg", "", http.StatusOK)
	s.stop(t)

	info := have(os.Stat(filepath.Join(j.root, "var/lib/oda/archive.db")))(t)
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != imageUser {
		t.Errorf("the archive belongs to %d", owner)
	}

	// A new container on the same volume has what the old one stored.
	var project struct {
		ID string `json:"prj_id"`
	}
	must(t, json.Unmarshal([]byte(stored), &project))
	s = j.run(t, "serve", "--listen=127.0.0.1:0", "--log-format=json")
	s.ready(t)
	s.request(t, "GET", "/api/v1/prjs/"+project.ID, "", http.StatusOK)
	s.stop(t)
}

func TestTheImageTrustsItsRootCertificates(t *testing.T) {
	j := unpackImage(t)
	path := filepath.Join(j.root, "etc/ssl/certs/ca-certificates.crt")
	roots := []byte(read(t, path))
	count := 0
	for rest := roots; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA {
			t.Errorf("certificate %d is not a root: %v", count, err)
		}
	}
	if count < 100 {
		t.Errorf("there are only %d root certificates", count)
	}

	// The program reads exactly this file: with the root of a provider in it, the
	// provider is asked, and without it is not.
	asked := make(chan struct{}, 100)
	provider := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		http.NotFound(w, nil)
	}))
	defer provider.Close()
	args := []string{"serve", "--listen=127.0.0.1:0", "--log-format=json", "--oidc-issuer=" + provider.URL, "--oidc-audience=oda"}
	s := j.run(t, args...)
	s.ready(t)
	s.await(t, "signed by unknown authority")
	s.stop(t)
	if len(asked) > 0 {
		t.Error("a provider with an unknown root certificate was asked")
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw})
	must(t, os.WriteFile(path, bytes.Join([][]byte{roots, own}, nil), 0o644))
	s = j.run(t, args...)
	s.ready(t)
	<-asked
	s.stop(t)
}
