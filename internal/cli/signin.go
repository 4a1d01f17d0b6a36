package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"oda/internal/app"
	"oda/internal/auth/oidc"
)

// signIn is how callers are known by an OpenID provider, and how people sign in on
// the pages.
type signIn struct {
	OidcIssuer           string `env:"ODA_OIDC_ISSUER" placeholder:"URL" group:"Callers" help:"OpenID provider whose tokens are accepted, exactly as it writes its address."`
	OidcAudience         string `env:"ODA_OIDC_AUDIENCE" placeholder:"AUDIENCE" group:"Callers" help:"Audience of the provider's tokens for this archive."`
	OidcRoles            string `env:"ODA_OIDC_ROLES" placeholder:"CLAIM" group:"Callers" help:"Claim that has the roles. Without it: roles and groups."`
	OidcClientID         string `name:"oidc-client-id" env:"ODA_OIDC_CLIENT_ID" placeholder:"ID" group:"Callers" help:"Client of the provider for signing in on the pages. Without it people sign in with a token."`
	OidcClientSecretFile string `env:"ODA_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" group:"Callers" help:"File with the secret of that client. A public client has none."`
	PublicURL            string `name:"public-url" env:"ODA_PUBLIC_URL" placeholder:"URL" group:"Callers" help:"Where browsers find the archive. The provider sends people back to URL/signed-in."`
	SessionKeyFile       string `env:"ODA_SESSION_KEY_FILE" placeholder:"FILE" group:"Callers" help:"File with the key of sessions, 32 bytes or more. Without it people must sign in again after a restart."`
}

// check checks which flags need others.
func (s *signIn) check() error {
	switch {
	case s.OidcIssuer == "" && (s.OidcAudience != "" || s.OidcRoles != "" || s.OidcClientID != ""):
		return errors.New("the flags --oidc-... need --oidc-issuer, the address of the provider")
	case s.OidcIssuer != "" && s.OidcAudience == "":
		return errors.New("--oidc-issuer needs --oidc-audience, the audience of the tokens for this archive")
	case s.OidcClientSecretFile != "" && s.OidcClientID == "":
		return errors.New("--oidc-client-secret-file needs --oidc-client-id, the client that the secret is of")
	case s.OidcClientID != "" && s.PublicURL == "":
		return errors.New("--oidc-client-id needs --public-url, the address to which the provider sends people back")
	}
	return nil
}

// configure adds what the flags say to the configuration of an archive.
func (s *signIn) configure(cfg *app.Config) error {
	cfg.OIDC = oidc.Config{Issuer: s.OidcIssuer, Audience: s.OidcAudience, Roles: s.OidcRoles, ClientID: s.OidcClientID}
	cfg.PublicURL, cfg.SessionKeyFile = s.PublicURL, s.SessionKeyFile
	if s.OidcClientSecretFile == "" {
		return nil
	}
	secret, err := os.ReadFile(s.OidcClientSecretFile)
	if err != nil {
		return fmt.Errorf("cannot read the file of --oidc-client-secret-file: %w", err)
	}
	cfg.OIDC.ClientSecret = strings.TrimSpace(string(secret))
	if cfg.OIDC.ClientSecret == "" {
		return fmt.Errorf("the file %s of --oidc-client-secret-file is empty", s.OidcClientSecretFile)
	}
	return nil
}
