// A real OpenID provider (https://www.npmjs.com/package/oidc-provider) for the tests of signing in.
// `node provider.mjs` reads one line of JSON: {"port", "client", "redirect", "after_logout", "accounts": {name: claims}}.
// It prints a line when it serves. Whoever names an account is signed in as that one; there are no passwords.
import { createInterface } from "node:readline";
import { Provider } from "oidc-provider";

const lines = createInterface({ input: process.stdin });
const given = JSON.parse((await lines[Symbol.asyncIterator]().next()).value);
const issuer = `http://127.0.0.1:${given.port}`;

const page = (title, form) =>
  `<!DOCTYPE html><html lang="en"><head><title>${title}</title><link rel="icon" href="data:,"></head>` +
  `<body><main><h1>${title}</h1>${form}</main></body></html>`;

async function loadExistingGrant(ctx) {
  const { client, session, provider } = ctx.oidc;
  const known = session.grantIdFor(client.clientId);
  if (known) return provider.Grant.find(known);
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope("openid profile email groups");
  await grant.save();
  return grant;
}

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: given.client.id,
      client_secret: given.client.secret,
      redirect_uris: [given.redirect],
      post_logout_redirect_uris: [given.after_logout],
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"], groups: ["groups"] },
  findAccount: (_, id) => given.accounts[id] && { accountId: id, claims: () => ({ sub: id, ...given.accounts[id] }) },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  loadExistingGrant,
  pkce: { required: () => true },
  cookies: { keys: ["tests"] },
  features: {
    devInteractions: { enabled: false },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx, form) => {
        ctx.body = page("Log out", `${form}<button form="op.logoutForm" name="logout" value="yes">Log out here</button>`);
      },
    },
  },
});

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith("/interaction/")) return next();
  if (ctx.method === "GET") {
    ctx.body = page(
      "Company sign-in",
      '<form method="post"><label>Account <input name="account"></label> <button>Continue</button></form>',
    );
    return undefined;
  }
  let body = "";
  for await (const part of ctx.req) body += part;
  const accountId = new URLSearchParams(body).get("account");
  ctx.respond = false;
  return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId } }, { mergeWithLastSubmission: false });
});

provider.listen(given.port, "127.0.0.1", () => console.log(`serving ${issuer}`));
