package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// lookPause is the time between two looks at the files of a certificate.
const lookPause = 2 * time.Second

// Certificate is a certificate with its key, from files that may be replaced while
// the server runs.
type Certificate struct {
	files   [2]string // certificate, key
	texts   [2][]byte // of the files when they were last read
	current atomic.Pointer[tls.Certificate]
}

// LoadCertificate reads a certificate and its key, both PEM. An error is a sentence
// for the operator.
func LoadCertificate(certificate, key string) (*Certificate, error) {
	c := &Certificate{files: [2]string{certificate, key}}
	_, err := c.load()
	return c, err
}

// load reads the files. It reports whether they have changed. If they are not a pair,
// the certificate stays as it is.
func (c *Certificate) load() (changed bool, err error) {
	var texts [2][]byte
	for i, file := range c.files {
		if texts[i], err = os.ReadFile(file); err != nil {
			return c.texts[i] != nil, fmt.Errorf("cannot read the certificate or its key: %w", err)
		}
	}
	if bytes.Equal(texts[0], c.texts[0]) && bytes.Equal(texts[1], c.texts[1]) {
		return false, nil
	}
	c.texts = texts
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return true, fmt.Errorf("%s and %s are not a certificate and its key: %w", c.files[0], c.files[1], err)
	}
	c.current.Store(&pair)
	return true, nil
}

// Follow reads the files again when they change, until ctx ends. While they are not
// a pair, because only one of them has been written yet, the server keeps the
// certificate that it has.
func (c *Certificate) Follow(ctx context.Context, log *slog.Logger) {
	said := ""
	for {
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
			return
		}
		changed, err := c.load()
		if err == nil {
			said = "" // of files that could not be read
		}
		switch {
		case err != nil && err.Error() != said:
			said = err.Error()
			log.Error("the certificate was changed but cannot be used; the one before stays in use", "error", err)
		case err == nil && changed:
			log.Info("the certificate was read again", "expires", c.Expires())
		}
	}
}

// Expires returns when the certificate in use expires.
func (c *Certificate) Expires() time.Time { return c.current.Load().Leaf.NotAfter }

// Config returns the settings of TLS: version 1.2 or later, and HTTP/2 for clients
// that know it.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}
