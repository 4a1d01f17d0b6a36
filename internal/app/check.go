package app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"oda/internal/auth"
	"oda/internal/auth/session"
	"oda/internal/httpapi"
	"oda/internal/postgres"
	"oda/night"
)

// Check returns everything that is wrong with a configuration, as far as that can be
// known without opening the database or an address. It changes nothing.
func Check(cfg Config) (wrong []error) {
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	base, err := basePath(cfg.BasePath)
	note(err)
	_, err = publicURL(cfg.PublicURL, base)
	note(err)
	_, stop, err := newMinter(cfg)
	if err == nil {
		err = stop()
	}
	note(err)
	if cfg.OIDC.Issuer != "" && cfg.OIDC.Audience != "" { // else the flags were refused
		note(cfg.OIDC.Valid())
	}
	if cfg.Auth.Tokens != "" {
		_, err = auth.ReadTokens(cfg.Auth.Tokens)
		note(err)
	}
	if cfg.SessionKeyFile != "" {
		_, err = session.New(session.Config{KeyFile: cfg.SessionKeyFile})
		note(err)
	}
	if cfg.TLSCertificate != "" && cfg.TLSKey != "" { // else the flags were refused
		_, err = loadCertificate(cfg)
		note(err)
	}
	note(httpapi.CheckOrigins(cfg.Origins))
	_, err = night.NewZones(cfg.Zones)
	note(err)
	note(checkAddress(cfg))
	note(checkAdmin(cfg))
	note(checkAudit(cfg.AuditLog))
	note(checkDatabase(cfg.Database))
	return wrong
}

// checkAdmin checks the address for operators.
func checkAdmin(cfg Config) error {
	if cfg.AdminListen == "" {
		return nil
	}
	addr, err := net.ResolveTCPAddr("tcp", cfg.AdminListen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (set it with --admin-listen, as HOST:PORT): %w", cfg.AdminListen, err)
	}
	// A main address that is not valid has its own message.
	if main, err := net.ResolveTCPAddr("tcp", cfg.Listen); err == nil && addr.Port != 0 && main.Port == addr.Port && main.IP.Equal(addr.IP) {
		return fmt.Errorf("--admin-listen and --listen are the same address, %s; choose another port", addr)
	}
	return adminExposed(cfg.AdminListen, addr)
}

// checkAddress checks the address to listen on, and that not everybody can call
// there unless that is wanted.
func checkAddress(cfg Config) error {
	addr, err := net.ResolveTCPAddr("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (set it with --listen, as HOST:PORT): %w", cfg.Listen, err)
	}
	open := cfg.OIDC.Issuer == "" && cfg.Auth.Tokens == "" && len(cfg.Auth.Proxies) == 0
	return exposed(addr, open, cfg)
}

// mayCreate asks syscall.Access whether files can be created in a folder: W_OK and X_OK.
const mayCreate = 2 | 1

// checkAudit checks that the audit log can be written, without creating it.
func checkAudit(path string) error {
	if path == "" {
		return nil
	}
	// To open a pipe only for writing would wait for a reader.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err == nil {
		return file.Close()
	}
	if errors.Is(err, os.ErrNotExist) {
		dir := filepath.Dir(path)
		if _, err = os.Stat(dir); err == nil {
			if err = syscall.Access(dir, mayCreate); err == nil {
				return nil
			}
			err = fmt.Errorf("cannot create it in %s: %w", dir, err)
		}
	}
	return fmt.Errorf("cannot open the audit log (set it with --audit-log): %w", err)
}

// CheckDatabase returns an error if this is not the address of a database.
func CheckDatabase(database string) error {
	if isPostgres(database) {
		return postgres.Check(database)
	}
	if _, ok := sqlitePath(database); !ok {
		return unknownDatabase(database)
	}
	return nil
}

// checkDatabase checks the address of a database, and what is there.
func checkDatabase(database string) error {
	path, embedded := sqlitePath(database)
	if err := CheckDatabase(database); err != nil || !embedded {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("the archive %s is a directory; name a file in it with --db, such as %s", path, filepath.Join(path, "archive.db"))
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("cannot look at the archive (--db): %w", err)
	}
	return nil
}
