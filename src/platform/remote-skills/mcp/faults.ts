/** The failure of a request to a server, as one sentence without secrets, and whether a repetition may succeed. */
import {
  OAuthClientFlowError,
  OAuthError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { EgressError } from '../../../adapters/egress/egress-error.ts';
import { RemoteFault } from '../remote-kind.ts';

const textCharsMax = 1_000;

/** The reason of the signal is passed on, because its owner knows what it means. */
export function faultOf(server: string, error: unknown, signal: AbortSignal): unknown {
  if (error instanceof RemoteFault) return error;
  if (signal.aborted) return timeoutOf(server, signal.reason) ?? signal.reason;
  const egress = causeOf(error);
  if (egress !== undefined) return egressFault(server, egress);
  if (error instanceof OAuthError || error instanceof OAuthClientFlowError) {
    const message = `The server ${server} could not be given a token: ${shortOf(error)}`;
    return new RemoteFault(message, { code: 'missing_credentials', cause: error });
  }
  const httpStatus = statusOf(error);
  if (httpStatus !== undefined) return httpFault(server, httpStatus, error);
  if (error instanceof ProtocolError) {
    return new RemoteFault(`The server ${server} refused: ${shortOf(error)}`, { cause: error });
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    return away(`The server ${server} did not answer in time`, error);
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.UnsupportedResultType) {
    const message = `The server ${server} asks its caller a question, which a job cannot answer`;
    return new RemoteFault(message, { cause: error });
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult) {
    const message = `The server ${server} does not answer as the protocol says: ${shortOf(error)}`;
    return new RemoteFault(message, { cause: error });
  }
  if (error instanceof RangeError) {
    return new RemoteFault(`The answer of ${server} is nested too deeply`, { cause: error });
  }
  return away(`The server ${server} could not be asked: ${shortOf(error)}`, error);
}

function timeoutOf(server: string, reason: unknown): RemoteFault | undefined {
  const isTimeout = reason instanceof Error && reason.name === 'TimeoutError';
  return isTimeout ? away(`The server ${server} did not answer in time`, reason) : undefined;
}

function away(message: string, cause: unknown): RemoteFault {
  return new RemoteFault(message, { code: 'upstream_unavailable', retryable: true, cause });
}

function egressFault(server: string, error: EgressError): RemoteFault {
  const message = `The server ${server} could not be asked. ${error.message}`;
  if (error.retryable) return away(message, error);
  const code = error.code === 'too_large' ? 'skill_execution_failed' : 'upstream_unavailable';
  return new RemoteFault(message, { code, cause: error });
}

function httpFault(server: string, status: number, cause: unknown): RemoteFault {
  if (status === 401 || status === 403) {
    const message = `The server ${server} refused the credentials (${status}): set them again`;
    return new RemoteFault(message, { code: 'missing_credentials', cause });
  }
  if (status === 429 || status >= 500)
    return away(`The server ${server} answered ${status}`, cause);
  const message = `The server ${server} answered ${status}: ${shortOf(cause)}`;
  return new RemoteFault(message, { cause });
}

function statusOf(error: unknown): number | undefined {
  if (error instanceof SdkHttpError) return error.status;
  return error instanceof UnauthorizedError ? 401 : undefined;
}

/** The error of the connection, in what the SDK wrapped around it. */
function causeOf(error: unknown, depth = 0): EgressError | undefined {
  if (error instanceof EgressError) return error;
  if (!(error instanceof Error) || depth > 5) return undefined;
  return causeOf(error.cause, depth + 1);
}

function shortOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s+/g, ' ').slice(0, textCharsMax);
}
