/**
 * The platform as a client of authorization servers. Each server outside has a redirect address of its own, so that the
 * code of one authorization server is never sent to another that has mixed them up.
 */

/** Where the browser comes back to: a page of the console. */
export function redirectUriOf(base: string, server: string): string {
  return `${base}/console/oauth/callback/${server}`;
}

/** The address of the client's metadata document, which is its id; null where clients cannot reach it over https. */
export function metadataAddressOf(publicUrl: string | null, server: string): string | null {
  return publicUrl?.startsWith('https://') ? `${publicUrl}/oauth/clients/${server}` : null;
}

/** What a registration says of the client. */
export function clientMetadataOf(
  redirectUri: string,
  {
    token_endpoint_auth_methods_supported: methods = [],
  }: { readonly token_endpoint_auth_methods_supported?: readonly string[] | undefined },
) {
  const isLocal = /^http:\/\/(?:localhost|127(?:\.\d+){3}|\[::1\])[:/]/.test(redirectUri);
  // RFC 8414: the first is what a server takes that names none. A client with a secret is the safer one.
  const [usual, post] = ['client_secret_basic', 'client_secret_post'] as const;
  const others = methods.includes(post) ? post : 'none';
  return {
    ...common(redirectUri),
    application_type: isLocal ? 'native' : 'web',
    token_endpoint_auth_method: methods.length === 0 || methods.includes(usual) ? usual : others,
  };
}

/** The document that an authorization server reads to know the client; null where there is none. */
export function metadataDocumentOf(publicUrl: string | null, server: string) {
  const address = metadataAddressOf(publicUrl, server);
  if (address === null || publicUrl === null) return null;
  return {
    ...{ client_id: address, client_uri: publicUrl },
    ...common(redirectUriOf(publicUrl, server)),
    token_endpoint_auth_method: 'none',
  };
}

const common = (redirectUri: string) => ({
  client_name: 'Skillwright',
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
});
