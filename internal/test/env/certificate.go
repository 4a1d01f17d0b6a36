package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"oda/internal/test/must"
)

// SelfSigned makes a certificate for 127.0.0.1 and archive.example, and its key,
// both PEM. No two certificates have the same number.
func SelfSigned(tb testing.TB) (certificate, key []byte) {
	tb.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
	template := x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"archive.example"}, IsCA: true, BasicConstraintsValid: true,
	}
	signed := must.Get(x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private))(tb)
	encoded := must.Get(x509.MarshalPKCS8PrivateKey(private))(tb)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// Trust returns the settings of a client that trusts only these certificates.
func Trust(certificates ...[]byte) *tls.Config {
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AppendCertsFromPEM(c)
	}
	return &tls.Config{RootCAs: pool}
}
