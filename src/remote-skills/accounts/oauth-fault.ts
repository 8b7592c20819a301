/** Why an authorization server gave no tokens, as one sentence without secrets. */

/**
 * `away`: it may answer later. `grant`: it does not take the code or refresh token any more. `client`: it does not know
 * the client. `refused`: anything else, which no repetition changes.
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
