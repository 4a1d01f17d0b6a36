package chart

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The program must start with the arguments that the chart gives it.
func TestTheProgramTakesTheArgumentsOfTheChart(t *testing.T) {
	oda := program(t)
	for name, values := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t, values)
			container := pod.Containers[0]
			dir := t.TempDir()
			secrets(t, oda, dir, pod)
			// As in the pod, but for where files are and which port is free.
			moved := strings.NewReplacer("/etc/oda/", dir+"/", "/var/lib/oda", dir, "--listen=:8080", "--listen=127.0.0.1:0", "--log-format=text", "--log-format=json")
			var args []string
			for _, arg := range container.Args {
				args = append(args, moved.Replace(arg))
			}
			cmd := exec.Command(oda, args...)
			cmd.Dir = dir
			cmd.Env = []string{"ODA_DB=sqlite:" + filepath.Join(dir, "archive.db")} // in place of PostgreSQL's
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			tooLong := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
			defer tooLong.Stop()
			serves := false
			var log bytes.Buffer
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				log.Write(append(lines.Bytes(), '\n'))
				if !serves && strings.Contains(lines.Text(), "serving the archive") {
					serves = true
					if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
						t.Error(err)
					}
				}
			}
			if err := cmd.Wait(); err != nil || !serves {
				t.Errorf("oda %s: %v\n%s", strings.Join(container.Args, " "), err, log.Bytes())
			}
		})
	}
}

// podOf returns the pod that the chart makes.
func podOf(t *testing.T, values map[string]any) corev1.PodSpec {
	t.Helper()
	for _, d := range documents(t, values) {
		if d.template != "statefulset.yaml" && d.template != "deployment.yaml" {
			continue
		}
		var workload struct {
			Spec struct {
				Template struct{ Spec corev1.PodSpec }
			}
		}
		if err := yaml.Unmarshal([]byte(d.text), &workload); err != nil {
			t.Fatal(err)
		}
		return workload.Spec.Template.Spec
	}
	t.Fatal("there is no workload")
	return corev1.PodSpec{}
}

// secrets makes the files that the pod would mount below /etc/oda.
func secrets(t *testing.T, oda, dir string, pod corev1.PodSpec) {
	t.Helper()
	for _, mount := range pod.Containers[0].VolumeMounts {
		if kind, ok := strings.CutPrefix(mount.MountPath, "/etc/oda/"); ok {
			if err := os.Mkdir(filepath.Join(dir, kind), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, arg := range pod.Containers[0].Args {
		_, below, ok := strings.Cut(arg, "=/etc/oda/")
		if !ok {
			continue
		}
		path := filepath.Join(dir, below)
		switch filepath.Dir(below) {
		case "tokens":
			if out, err := exec.Command(oda, "token", "create", "--file", path, "--name", "script", "--role", "editor").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		case "tls":
			writePair(t, filepath.Dir(path))
		default:
			if err := os.WriteFile(path, bytes.Repeat([]byte("secret"), 8), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// writePair writes tls.crt and tls.key, as a secret of the type kubernetes.io/tls has
// them.
func writePair(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"archive"}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// program returns an oda: the one that ODA_BIN names, or one that is built now.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ODA_BIN"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "oda")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/oda")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}
