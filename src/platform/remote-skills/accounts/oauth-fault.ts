/** Why an authorization server gave no tokens, as one sentence without secrets. */

/**
 * `away`: temporarily unavailable. `grant`: the code or refresh token is no longer valid. `client`: the client is
 * unknown. `refused`: any other permanent failure.
 */
export type OauthFaultKind = 'away' | 'grant' | 'client' | 'refused';

export class OauthFault extends Error {
  readonly kind: OauthFaultKind;

  constructor(kind: OauthFaultKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'OauthFault';
    this.kind = kind;
  }
}
