/**
 * The endpoints of a server that publishes no metadata. By the revision 2025-03-26 of the Model Context Protocol it is its
 * own authorization server, with these paths at its root, and takes PKCE.
 */
import type { OAuthMetadata } from '@modelcontextprotocol/client';

export function defaultMetadataOf(url: string): OAuthMetadata {
  const { origin } = new URL(url);
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  };
}
