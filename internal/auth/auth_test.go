package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oda"
)

func TestRolesInGroups(t *testing.T) {
	for _, test := range []struct {
		names string
		role  Role
		bound map[string]Role
	}{
		{"", NoRole, nil},
		{"staff|oda|oda-|oda-owner|oda-anyone|ODA-admin|Oda-reader|xoda-admin|oda-admin ", NoRole, nil},
		{"oda-reader", Reader, nil},
		{"oda-reader|oda-editor|oda-recorder", Editor, nil},
		{"oda-admin|oda-reader", Admin, nil},
		{"oda-recorder:ska_mid", NoRole, map[string]Role{"ska_mid": Recorder}},
		{"oda-editor:a|oda-recorder:a|oda-reader:b|oda-reader", Reader, map[string]Role{"a": Editor, "b": Reader}},
		{"oda-editor:a:b", NoRole, map[string]Role{"a:b": Editor}},
		{"oda-editor:|oda-editor:a\x00|oda-editor:\xff|oda-editor:" + strings.Repeat("a", 1025), NoRole, nil},
	} {
		var c Caller
		c.Grant(strings.Split(test.names, "|")...)
		if diff := cmp.Diff(test.bound, c.Bound); diff != "" || c.Role != test.role {
			t.Errorf("%q gives %s and %s", test.names, c.Role, diff)
		}
	}
}

func TestWhereACallerMayWrite(t *testing.T) {
	c := &Caller{Name: "x", Role: Reader, Bound: map[string]Role{"a": Recorder, "b": Editor}}
	for need, want := range map[Role][]string{Recorder: {"a", "b"}, Editor: {"b"}} {
		if err := c.Check(need); err != nil {
			t.Errorf("%s: %v", need, err)
		}
		if diff := cmp.Diff(want, c.Where(need).Names()); diff != "" {
			t.Errorf("%s: %s", need, diff)
		}
	}
	if c.Where(Reader) != nil {
		t.Error("reading is bound")
	}
	if err := c.Check(Admin); oda.CodeOf(err) != oda.Forbidden || !strings.Contains(err.Error(), "the role admin") {
		t.Errorf("got %v", err)
	}
}

// A token has a form that scanners for secrets recognise, and a checksum. Nobody
// finds it in the file.
func TestTheFormOfATokenAndItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	secret, err := CreateToken(file, Token{Name: "a", Role: Editor, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^oda_[A-Z2-7]{33}$`).MatchString(secret) || checksum(secret[:30]) != secret[30:] {
		t.Errorf("the token is %q", secret)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret[4:20]) {
		t.Errorf("the file contains the token: %s", text)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

// Whoever the operator lets read the file may still read it after a change, whatever the
// umask of the one who changes it. Otherwise the server would keep what was revoked.
func TestAChangedFileOfTokensIsReadByTheSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if _, err := CreateToken(file, Token{Name: "a", Role: Editor}); err != nil {
		t.Fatal(err)
	}
	owner, group := os.Geteuid(), os.Getegid()
	if owner == 0 {
		owner, group = 54321, 54322
	} else {
		t.Log("only root can check that owner and group are kept")
	}
	if err := errors.Join(os.Chown(file, owner, group), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if has := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != 0o640 || int(has.Uid) != owner || int(has.Gid) != group {
			t.Errorf("the file has the mode %v, the owner %d and the group %d", info.Mode(), has.Uid, has.Gid)
		}
	}
	defer syscall.Umask(syscall.Umask(0o077))
	if _, err := CreateToken(file, Token{Name: "b", Role: Editor}); err != nil {
		t.Fatal(err)
	}
	check()
	if os.Geteuid() == 0 {
		owner = 0 // as where the group of the server may read it
		if err := os.Chown(file, owner, group); err != nil {
			t.Fatal(err)
		}
	}
	if err := RevokeToken(file, "a"); err != nil {
		t.Fatal(err)
	}
	check()
}

// Tokens that are made at the same time are all kept.
func TestTokensMadeTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	const n = 8
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { _, errs[i] = CreateToken(file, Token{Name: string(rune('a' + i)), Role: Reader}) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	list, err := ReadTokens(file)
	if err != nil || len(list) != n {
		t.Errorf("the file has %d tokens, %v", len(list), err)
	}
}

func TestFilesThatAreNotOfTokens(t *testing.T) {
	const hash = `"sha256":"38a2204e698080e8eb6faf51b7ef7e5243c00892b5f9bb8d763b0944ef42ff54"`
	for name, text := range map[string]string{
		"empty":           ``,
		"not JSON":        `oda_X`,
		"no role":         `{"tokens":[{"name":"a",` + hash + `}]}`,
		"unknown role":    `{"tokens":[{"name":"a","role":"boss",` + hash + `}]}`,
		"no name":         `{"tokens":[{"role":"reader",` + hash + `}]}`,
		"short hash":      `{"tokens":[{"name":"a","role":"reader","sha256":"38a2"}]}`,
		"unknown field":   `{"tokens":[{"name":"a","role":"reader","telescope":"x",` + hash + `}]}`,
		"empty telescope": `{"tokens":[{"name":"a","role":"reader","telescopes":[""],` + hash + `}]}`,
		"more behind it":  `{"tokens":[]}{"tokens":[]}`,
		"a name twice":    `{"tokens":[{"name":"a","role":"reader",` + hash + `},{"name":"a","role":"reader",` + hash + `}]}`,
	} {
		file := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Tokens: file}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "oda token create") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Whoever can write the file of tokens can make tokens.
func TestAFileOfTokensThatOthersCanWriteIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if _, err := CreateToken(file, Token{Name: "a", Role: Reader}); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o444: true, 0o620: false, 0o660: false, 0o602: false, 0o666: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{Tokens: file}, slog.New(slog.DiscardHandler))
		if good != (err == nil) || !good && !strings.Contains(err.Error(), "chmod go-w "+file) {
			t.Errorf("with the mode %o: %v", mode, err)
		}
		if !good && RevokeToken(file, "a") == nil {
			t.Errorf("with the mode %o, the file was changed", mode)
		}
	}
}

func TestWhichAddressesAreTrusted(t *testing.T) {
	p := proxy{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/64")}
	for remote, want := range map[string]bool{
		"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "[fd00::7%eth0]:80": true,
		"11.0.0.1:80": false, "[fd01::7]:80": false, "": false, "10.1.2.3": false, "@": false,
	} {
		if got := p.trusts(remote); got != want {
			t.Errorf("%q: %v", remote, got)
		}
	}
}

// Looking a token up takes no memory.
func TestATokenCostsNoMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	secret, err := CreateToken(file, Token{Name: "a", Role: Reader, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := New(Config{Tokens: file}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	if n := testing.AllocsPerRun(100, func() {
		if c, err := gate.Caller(r); err != nil || c.Check(Reader) != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a look-up takes %v objects", n)
	}
}

func BenchmarkToken(b *testing.B) {
	file := filepath.Join(b.TempDir(), "tokens")
	secret, err := CreateToken(file, Token{Name: "a", Role: Reader, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		b.Fatal(err)
	}
	gate, err := New(Config{Tokens: file}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	for b.Loop() {
		if _, err := gate.Caller(r); err != nil {
			b.Fatal(err)
		}
	}
}
