// A certified OpenID provider for tests, on 127.0.0.1. Its settings are a JSON
// file: see Provider in openid.go. Anyone may sign in with any password.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const settings = JSON.parse(readFileSync(process.argv[2]));
const roles = (person) => settings.people[person];

const provider = new Provider(`http://127.0.0.1:${settings.port}`, {
  jwks: { keys: settings.keys },
  cookies: { keys: ["for tests only"] },
  clients: [
    {
      client_id: "pages", client_secret: settings.secret, redirect_uris: settings.redirects,
      post_logout_redirect_uris: [], id_token_signed_response_alg: settings.alg,
    },
    // Each machine is a client of its own; its identifier is its name.
    ...Object.keys(settings.people).map((name) => ({
      client_id: name, client_secret: settings.secret, redirect_uris: [], response_types: [],
      grant_types: ["client_credentials"], id_token_signed_response_alg: settings.alg,
    })),
  ],
  claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
  scopes: ["openid", "profile", "groups"],
  // In the ID token itself, or else where only the endpoint userinfo has them.
  conformIdTokenClaims: settings.userinfo,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: `subject of ${id}`, preferred_username: id, groups: roles(id) }),
  }),
  extraTokenClaims: (_, token) => ({ preferred_username: token.clientId, groups: roles(token.clientId) }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      getResourceServerInfo: (_, resource) => ({
        scope: "", audience: resource, accessTokenFormat: "jwt", accessTokenTTL: settings.ttl,
        jwt: { sign: { alg: settings.alg } },
      }),
    },
  },
  ttl: { ClientCredentials: settings.ttl, IdToken: settings.ttl, AccessToken: settings.ttl, Session: 3600, Grant: 3600, Interaction: 600 },
  // The first client may see everything, so nobody is asked for a consent.
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope("openid profile groups");
    await grant.save();
    return grant;
  },
});

let fetched = 0; // how often the keys were asked for
const callback = provider.callback();
createServer((request, response) => {
  if (request.url === "/fetched") {
    response.end(String(fetched));
    return;
  }
  if (request.url === "/jwks") {
    fetched++;
  }
  callback(request, response);
}).listen(settings.port, "127.0.0.1");
