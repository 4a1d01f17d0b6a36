package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

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
