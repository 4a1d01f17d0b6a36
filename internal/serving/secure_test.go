package serving_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oda/internal/serving"
	"oda/internal/test/env"
)

// pair writes a certificate and its key to files in a folder.
func pair(t *testing.T, dir string, certificate, key []byte) (files [2]string) {
	t.Helper()
	files = [2]string{filepath.Join(dir, "crt"), filepath.Join(dir, "key")}
	for i, text := range [][]byte{certificate, key} {
		if err := os.WriteFile(files[i], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Whatever is written to the files, the server shows a certificate whose key it has.
func TestOnlyAPairReplacesACertificate(t *testing.T) {
	dir := t.TempDir()
	first, firstKey := env.SelfSigned(t)
	second, secondKey := env.SelfSigned(t)
	files := pair(t, dir, first, firstKey)
	c, err := serving.LoadCertificate(files[0], files[1])
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var said env.Journal
		go c.Follow(ctx, said.Logger())
		shown := func() string {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			now, err := c.Config().GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return now.Leaf.SerialNumber.String()
		}
		before, bad := shown(), 0
		for _, test := range []struct {
			name             string
			certificate, key []byte
		}{
			{"another key", first, secondKey},
			{"another certificate", second, firstKey},
			{"exchanged", secondKey, second},
			{"empty files", nil, nil},
			{"half a key", second, secondKey[:len(secondKey)/2]},
			{"no PEM", []byte("certificate"), []byte("key")},
		} {
			pair(t, dir, test.certificate, test.key)
			if got := shown(); got != before {
				t.Errorf("%s: the certificate shown is %s", test.name, got)
			}
			if bad++; strings.Count(said.String(), "the one before stays in use") != bad {
				t.Errorf("%s: the log is\n%s", test.name, said.String())
			}
		}
		pair(t, dir, second, secondKey)
		if shown() == before {
			t.Error("the new certificate is not shown")
		}
		if strings.Contains(said.String(), "PRIVATE KEY") {
			t.Errorf("a key is in the log:\n%s", said.String())
		}
	})
	if _, err := serving.LoadCertificate(files[0], files[0]); err == nil || !strings.Contains(err.Error(), "are not a certificate and its key") {
		t.Errorf("a start without a key: %v", err)
	}
}

// An answer may be cut off because it could not be written in time. The client must see
// that it was cut off, and not data that seem to have been changed on the way.
func TestAnAnswerThatIsCutOffIsNotTakenForOneThatWasChanged(t *testing.T) {
	certificate, key := env.SelfSigned(t)
	files := pair(t, t.TempDir(), certificate, key)
	loaded, err := serving.LoadCertificate(files[0], files[1])
	if err != nil {
		t.Fatal(err)
	}
	listener, err := serving.Listen(t.Context(), "--listen", "127.0.0.1:0", 4)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		_, first := io.WriteString(w, "begun")
		first = errors.Join(first, control.Flush(), control.SetWriteDeadline(time.Now()))
		_, second := w.Write(make([]byte, 1<<20))
		if first != nil || second == nil {
			t.Errorf("the writes ended with %v and %v", first, second)
		}
	})}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- serving.Until(ctx, server, listener.Secure(loaded.Config(), time.Minute, nil), time.Second)
	}()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), env.Trust(certificate))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(response.Body); string(text) != "begun" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after %q the client sees %v", text, err)
	}
}
