package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"oda"
	"oda/internal/admission"
	"oda/internal/app"
	"oda/internal/auth"
	"oda/internal/auth/oidc"
	"oda/internal/httpapi"
	"oda/internal/skuid"
)

// serve serves an archive.
type serve struct {
	Config   string   `env:"ODA_CONFIG" placeholder:"FILE" help:"File of settings, YAML. Its keys are the names of these flags. SIGHUP reads it again."`
	Listen   string   `default:"127.0.0.1:8080" env:"ODA_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on (default ${default}). Port 0 picks a free port."`
	Db       string   `default:"sqlite:oda-data/archive.db" env:"ODA_DB" placeholder:"DATABASE" help:"Where to keep the archive: sqlite:PATH, or postgres://USER@HOST/NAME for a PostgreSQL database (default ${default})."`
	Export   string   `env:"ODA_EXPORT" placeholder:"FILE" help:"Show this export instead, read-only, as \"oda export\" wrote it. It is unpacked into a temporary archive."`
	BasePath string   `env:"ODA_BASE_PATH" placeholder:"/PATH" help:"Prefix before all paths, such as a cluster namespace."`
	Zone     []string `env:"ODA_ZONE" reload:"hangup" placeholder:"ZONE" help:"Time zone in which nights last from noon to noon, such as Africa/Johannesburg, or that of one telescope, such as ska_low=Australia/Perth. Without it UTC."`
	logging  `embed:""`

	TLSCert string `name:"tls-cert" env:"ODA_TLS_CERT" reload:"followed" placeholder:"FILE" group:"Transport" help:"Certificate to speak HTTPS with, PEM, with the certificates between it and the root. Read again when the file changes. Without it the archive speaks HTTP."`
	TLSKey  string `name:"tls-key" env:"ODA_TLS_KEY" reload:"followed" placeholder:"FILE" group:"Transport" help:"Private key of the certificate, PEM. Read again when the file changes."`

	AdminListen       string   `env:"ODA_ADMIN_LISTEN" placeholder:"HOST:PORT" group:"Transport" help:"Loopback address for /metrics and /debug/pprof/. Without it, /metrics is on the main address, and there are no profiles."`
	CORSOrigin        []string `name:"cors-origin" env:"ODA_CORS_ORIGIN" reload:"hangup" placeholder:"ORIGIN" group:"Transport" help:"Origins whose web pages may use the interface, such as https://tools.example.org. With * pages of any origin may read. Without it only the archive's own pages may."`
	CallerRate        float64  `default:"0" env:"ODA_CALLER_RATE" reload:"hangup" placeholder:"N" group:"Limits per caller" help:"Requests per second that one caller may send on average; beyond it they are answered 429. 0 means no limit (default ${default})."`
	CallerConcurrency int      `default:"0" env:"ODA_CALLER_CONCURRENCY" reload:"hangup" placeholder:"N" group:"Limits per caller" help:"Requests and streams that one caller may have in progress at once; beyond it they are answered 429. 0 means no limit (default ${default})."`

	SkuidURL   string    `name:"skuid-url" env:"SKUID_URL,ODA_SKUID_URL" placeholder:"URL" help:"Identifier service to ask for new identifiers. Without it the archive mints them itself."`
	SkuidTypes string    `env:"ODA_SKUID_TYPES" placeholder:"KIND=TYPE,..." help:"Types to ask the identifier service for, where they differ from sbd, sbi, eb and prj: prj=opj for older services."`
	Generator  generator `env:"ODA_GENERATOR" placeholder:"0-1023" help:"Generator number for new identifiers (default ${generator}). Give each archive its own."`

	Tokens     string    `env:"ODA_TOKENS" reload:"followed" placeholder:"FILE" group:"Callers" help:"File with the tokens of callers, made with \"oda token create\". Changes are followed."`
	TrustProxy []network `env:"ODA_TRUST_PROXY" placeholder:"CIDR" group:"Callers" help:"Addresses of proxies whose headers X-Forwarded-User and X-Forwarded-Groups say who is calling."`
	Insecure   bool      `env:"ODA_INSECURE" group:"Callers" help:"Serve on any address without knowing who is calling. Everybody may then read and write."`

	signIn `embed:""`

	AuditLog     string `env:"ODA_AUDIT_LOG" reload:"reopened" placeholder:"FILE" group:"Callers" help:"File in which to keep, as lines of JSON, who wrote what, and who was not allowed to. SIGHUP begins a new file."`
	AuditMayFail bool   `env:"ODA_AUDIT_MAY_FAIL" group:"Callers" help:"Let writes go on while the audit log cannot be written. Without this they are refused."`

	MaxBody                  byteSize      `default:"64MiB" env:"ODA_MAX_BODY" placeholder:"SIZE" group:"Bounds" help:"Largest body of a request (default ${default})."`
	MaxBodiesInFlight        byteSize      `default:"256MiB" env:"ODA_MAX_BODIES_IN_FLIGHT" placeholder:"SIZE" group:"Bounds" help:"Total size of the bodies in progress; beyond it requests are answered 503 (default ${default})."`
	MaxAnswersInFlight       byteSize      `default:"256MiB" env:"ODA_MAX_ANSWERS_IN_FLIGHT" placeholder:"SIZE" group:"Bounds" help:"Total size of the large answers in progress, of which one caller has at most a quarter; further ones wait for 5 s, and are then answered 503 (default ${default})."`
	MaxDepth                 int           `default:"100" env:"ODA_MAX_DEPTH" placeholder:"N" group:"Bounds" help:"Deepest nesting of a document, at most 10000 (default ${default})."`
	MaxConnections           int           `default:"1024" env:"ODA_MAX_CONNECTIONS" placeholder:"N" group:"Bounds" help:"Connections at once; further ones replace connections without a request, or wait (default ${default})."`
	MaxConnectionsPerAddress int           `default:"0" env:"ODA_MAX_CONNECTIONS_PER_ADDRESS" placeholder:"N" group:"Bounds" help:"Connections of one address at once, except this machine and trusted proxies; further ones are closed. 0 means a quarter of --max-connections (default ${default})."`
	MaxFollowers             int           `default:"4096" env:"ODA_MAX_FOLLOWERS" placeholder:"N" group:"Bounds" help:"Clients that follow changes at once, by streams or requests that wait; further ones are answered 503 (default ${default})."`
	HeaderTimeout            time.Duration `default:"10s" env:"ODA_HEADER_TIMEOUT" placeholder:"TIME" group:"Bounds" help:"Time for the headers of a request to arrive (default ${default})."`
	ReadTimeout              time.Duration `default:"60s" env:"ODA_READ_TIMEOUT" placeholder:"TIME" group:"Bounds" help:"Time for a whole request to arrive (default ${default})."`
	WriteTimeout             time.Duration `default:"120s" env:"ODA_WRITE_TIMEOUT" placeholder:"TIME" group:"Bounds" help:"Time for a whole response to be sent (default ${default})."`
	IdleTimeout              time.Duration `default:"120s" env:"ODA_IDLE_TIMEOUT" placeholder:"TIME" group:"Bounds" help:"How long an idle connection stays open (default ${default})."`
}

// maxCallerRate bounds --caller-rate. With a rate that is too large to count with, every
// request would be refused.
const maxCallerRate = 1_000_000_000

// Validate checks what the flag types cannot.
func (s *serve) Validate() error {
	if wrong := s.faults(); len(wrong) > 0 {
		return wrong
	}
	return nil
}

// faults returns everything that is wrong with the settings themselves. What they
// name is checked by app.Check, or when the archive starts.
func (s *serve) faults() (wrong faults) {
	wrong = append(positive(map[string]int64{
		"--max-body": int64(s.MaxBody), "--max-bodies-in-flight": int64(s.MaxBodiesInFlight), "--max-answers-in-flight": int64(s.MaxAnswersInFlight),
		"--max-depth": int64(s.MaxDepth), "--max-connections": int64(s.MaxConnections), "--max-followers": int64(s.MaxFollowers),
		"--header-timeout": int64(s.HeaderTimeout), "--read-timeout": int64(s.ReadTimeout),
		"--write-timeout": int64(s.WriteTimeout), "--idle-timeout": int64(s.IdleTimeout),
	}), s.signIn.faults()...)
	if !(s.CallerRate >= 0 && s.CallerRate <= maxCallerRate) { // nor is NaN
		wrong = append(wrong, fmt.Errorf("--caller-rate must be a number from 0 to %d; 0 means no limit", maxCallerRate))
	}
	if s.CallerConcurrency < 0 {
		wrong = append(wrong, errors.New("--caller-concurrency must not be negative; 0 means no limit"))
	}
	if s.MaxConnectionsPerAddress < 0 {
		wrong = append(wrong, errors.New("--max-connections-per-address must not be negative; 0 means a quarter of --max-connections"))
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		wrong = append(wrong, errors.New("--tls-cert and --tls-key belong together: give both, or neither"))
	}
	if s.MaxBody > s.MaxBodiesInFlight {
		wrong = append(wrong, errors.New("--max-body must not exceed --max-bodies-in-flight"))
	}
	if s.MaxDepth == 1 {
		wrong = append(wrong, errors.New("--max-depth must be at least 2: every document contains the object metadata"))
	}
	if s.MaxDepth > oda.MaxDepth {
		wrong = append(wrong, fmt.Errorf("--max-depth must be at most %d: each level of a document takes memory while it is read", oda.MaxDepth))
	}
	return wrong
}

// config returns the configuration of the archive.
func (s *serve) config(version string, log *slog.Logger) (app.Config, error) {
	secret, err := s.clientSecret()
	return app.Config{
		Listen: s.Listen, AdminListen: s.AdminListen, Database: s.Db, BasePath: s.BasePath,
		TLSCertificate: s.TLSCert, TLSKey: s.TLSKey,
		Limits: s.limits(), Origins: s.CORSOrigin, Zones: s.Zone,
		SkuidURL: s.SkuidURL, SkuidTypes: s.SkuidTypes, Generator: s.Generator.orDefault(),
		Auth:      auth.Config{Tokens: s.Tokens, Proxies: prefixes(s.TrustProxy), Insecure: s.Insecure},
		OIDC:      oidc.Config{Issuer: s.OidcIssuer, Audience: s.OidcAudience, Roles: s.OidcRoles, ClientID: s.OidcClientID, ClientSecret: secret},
		PublicURL: s.PublicURL, SessionKeyFile: s.SessionKeyFile,
		Bounds:        httpapi.Bounds{Body: int64(s.MaxBody), InFlight: int64(s.MaxBodiesInFlight), Answers: int64(s.MaxAnswersInFlight), Depth: s.MaxDepth},
		HeaderTimeout: s.HeaderTimeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout,
		MaxConnections: s.MaxConnections, MaxPerAddress: s.MaxConnectionsPerAddress, MaxFollowers: s.MaxFollowers,
		AuditLog: s.AuditLog, AuditMayFail: s.AuditMayFail,
		Version: version, Log: log,
	}, err
}

func (s *serve) limits() admission.Limits {
	return admission.Limits{Rate: s.CallerRate, Concurrent: s.CallerConcurrency}
}

// Run serves until the process is asked to stop.
func (s *serve) Run(ctx context.Context, command *kong.Context, to streams) error {
	log, level, flush := s.gathered(to.err)
	defer flush()
	received := hangups()
	cfg, err := s.config(to.version, log)
	if err != nil {
		return err
	}
	if s.Export != "" {
		database, remove, err := app.Unpack(ctx, s.Export, int64(s.MaxBody), log)
		if ctx.Err() != nil {
			return nil // it was asked to stop
		}
		if err != nil {
			return err
		}
		defer func() { _ = remove() }() // the next server removes what is left
		cfg.Database, cfg.ReadOnly = database, true
	}
	a, err := app.Start(ctx, cfg)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("stopped before the archive was open; the next start continues from here")
		return nil
	}
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // what it took to open the archive is not needed again
	again := &reloading{flags: command.Selected().Flags, args: to.args, level: level, log: log}
	go onEach(ctx, received, func() { s.hangup(a, again) })
	return a.Wait()
}

// hangup begins a new file of the audit log, and applies settings that have changed.
func (s *serve) hangup(a *app.App, again *reloading) {
	if s.AuditLog != "" {
		if err := a.Reopen(); err != nil {
			again.log.Error("SIGHUP: the audit log goes on in its old file", "error", err)
		} else {
			again.log.Info("SIGHUP: the audit log was reopened", "path", s.AuditLog)
		}
	}
	again.apply(func(next *commands) error {
		secret, err := next.Serve.clientSecret()
		if err != nil {
			return err
		}
		return a.Reload(next.Serve.limits(), next.Serve.CORSOrigin, next.Serve.Zone, secret)
	})
}

// signIn is how callers are known by an OpenID provider, and how people sign in on
// the pages.
type signIn struct {
	OidcIssuer           string `env:"ODA_OIDC_ISSUER" placeholder:"URL" group:"Callers" help:"OpenID provider whose tokens are accepted, exactly as it writes its address."`
	OidcAudience         string `env:"ODA_OIDC_AUDIENCE" placeholder:"AUDIENCE" group:"Callers" help:"Audience of the provider's tokens for this archive."`
	OidcRoles            string `env:"ODA_OIDC_ROLES" placeholder:"CLAIM" group:"Callers" help:"Claim that has the roles. Without it: roles and groups."`
	OidcClientID         string `name:"oidc-client-id" env:"ODA_OIDC_CLIENT_ID" placeholder:"ID" group:"Callers" help:"Client of the provider for signing in on the pages. Without it people sign in with a token."`
	OidcClientSecretFile string `env:"ODA_OIDC_CLIENT_SECRET_FILE" reload:"read" placeholder:"FILE" group:"Callers" help:"File with the secret of that client. A public client has none."`
	PublicURL            string `name:"public-url" env:"ODA_PUBLIC_URL" placeholder:"URL" group:"Callers" help:"Where browsers find the archive. The provider sends people back to URL/signed-in."`
	SessionKeyFile       string `env:"ODA_SESSION_KEY_FILE" placeholder:"FILE" group:"Callers" help:"File with the key of sessions, 32 bytes or more. Without it people must sign in again after a restart."`
}

// faults returns which flags need others.
func (s *signIn) faults() (wrong faults) {
	if s.OidcIssuer == "" && (s.OidcAudience != "" || s.OidcRoles != "" || s.OidcClientID != "") {
		wrong = append(wrong, errors.New("the flags --oidc-... need --oidc-issuer, the address of the provider"))
	}
	if s.OidcIssuer != "" && s.OidcAudience == "" {
		wrong = append(wrong, errors.New("--oidc-issuer needs --oidc-audience, the audience of the tokens for this archive"))
	}
	if s.OidcClientSecretFile != "" && s.OidcClientID == "" {
		wrong = append(wrong, errors.New("--oidc-client-secret-file needs --oidc-client-id, the client that the secret is of"))
	}
	if s.OidcClientID != "" && s.PublicURL == "" {
		wrong = append(wrong, errors.New("--oidc-client-id needs --public-url, the address to which the provider sends people back"))
	}
	return wrong
}

// clientSecret reads the secret of the client, empty if it has none.
func (s *signIn) clientSecret() (string, error) {
	if s.OidcClientSecretFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(s.OidcClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the file of --oidc-client-secret-file: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("the file %s of --oidc-client-secret-file is empty", s.OidcClientSecretFile)
	}
	return secret, nil
}

// skuids is the identifier service as a separate process.
type skuids struct {
	Config    string    `env:"ODA_SKUID_CONFIG" placeholder:"FILE" help:"File of settings, YAML. Its keys are the names of these flags. SIGHUP reads it again."`
	Listen    string    `default:"127.0.0.1:9870" env:"ODA_SKUID_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on (default ${default}). Port 0 picks a free port."`
	Generator generator `env:"ODA_GENERATOR" placeholder:"0-1023" help:"Generator number for new identifiers (default ${generator}). Give each instance its own."`
	State     string    `env:"ODA_SKUID_STATE" placeholder:"FILE" help:"File that keeps identifiers unique across restarts, even if the clock is set back."`
	Twice     bool      `env:"ODA_SKUID_TWICE" help:"Encode JSON answers twice, as the older service does."`
	logging   `embed:""`
}

// Run serves until the process is asked to stop.
func (s *skuids) Run(ctx context.Context, command *kong.Context, to streams) error {
	log, level, flush := s.gathered(to.err)
	defer flush()
	debug.FreeOSMemory() // what it took to open the archive is not needed again
	again := &reloading{flags: command.Selected().Flags, args: to.args, level: level, log: log}
	go onEach(ctx, hangups(), func() { again.apply(func(*commands) error { return nil }) })
	return skuid.Run(ctx, skuid.Config{
		Listen: s.Listen, Generator: s.Generator.orDefault(), StateFile: s.State, Twice: s.Twice, Logger: log,
	})
}
