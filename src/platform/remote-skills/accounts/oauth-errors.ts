/** What an authorization server or the way to it did wrong, in the words of a fault. */
import { OAuthError } from '@modelcontextprotocol/client';
import { EgressError } from '../../../adapters/egress/egress-error.ts';
import { isObject } from '../../../kernel/json.ts';
import { OauthFault } from './oauth-fault.ts';

const textCharsMax = 300;

/** The failure of a request to an authorization server, as a fault with one sentence. */
export function faultOf(error: unknown, deadline: AbortSignal): OauthFault {
  if (error instanceof OauthFault) return error;
  if (deadline.aborted) {
    return new OauthFault('away', 'The authorization server did not answer in time', error);
  }
  const egress = egressIn(error);
  if (egress !== undefined) {
    const what = `The authorization server could not be asked. ${egress.message}`;
    return new OauthFault(egress.retryable ? 'away' : 'refused', what, error);
  }
  if (error instanceof OAuthError) return oauthFault(error);
  const what = `The authorization server did not answer as it should: ${shortOf(messageOf(error))}`;
  return new OauthFault('refused', what, error);
}

const away = new Set(['server_error', 'temporarily_unavailable', 'too_many_requests']);

function oauthFault(error: OAuthError): OauthFault {
  const code = String(error.code);
  // The SDK calls an answer that is not JSON a fault of the server, and puts all of it into the message.
  const isUnreadable = error.message.includes('Invalid OAuth error response');
  const reason = isUnreadable ? 'an answer that cannot be read' : shortOf(error.message);
  const what = `The authorization server refused: ${code} (${reason})`;
  if (code === 'invalid_grant') return new OauthFault('grant', what, error);
  if (code === 'invalid_client' || code === 'unauthorized_client') {
    return new OauthFault('client', what, error);
  }
  return new OauthFault(away.has(code) ? 'away' : 'refused', what, error);
}

function egressIn(error: unknown, depth = 0): EgressError | undefined {
  if (error instanceof EgressError) return error;
  if (!isObject(error) && !(error instanceof Error)) return undefined;
  return depth > 5 ? undefined : egressIn((error as Error).cause, depth + 1);
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Text of a service outside within a sentence of ours. */
export function shortOf(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, textCharsMax);
}
