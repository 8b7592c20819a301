/** Refusals of the platform in the protocol's form: a result for the model, or an error of JSON-RPC. */
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { ErrorCode } from '../../kernel/errors.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { errorResult } from './results.ts';

/** Refusals that the model can do something about. */
const forModel: ReadonlySet<ErrorCode> = new Set(['validation_error', 'agent_paused', 'conflict']);
const ofServer: ReadonlySet<ErrorCode> = new Set([
  'internal_error',
  'service_unavailable',
  'upstream_unavailable',
]);

/** The result of a refused call, for the model; throws errors that the model can do nothing about. */
export function refusedCall(error: unknown): CallToolResult {
  if (!(error instanceof PlatformError)) throw error;
  if (!forModel.has(error.code)) throw protocolError(error);
  const { code, message, extras } = error;
  // The message names the first issue already.
  const others = extras.details?.filter(
    ({ field, issue }) => !message.endsWith(`${field} ${issue}`),
  );
  return errorResult(`${code}: ${message}`, others);
}

function protocolError({ code, message, extras }: PlatformError): ProtocolError {
  const { retryAfter } = extras;
  return new ProtocolError(
    ofServer.has(code) ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams,
    message,
    { error: code, ...(retryAfter === undefined ? {} : { retry_after: retryAfter }) },
  );
}

/** Any error of a verb as one of the protocol. */
export function protocolErrorOf(error: unknown): unknown {
  return error instanceof PlatformError ? protocolError(error) : error;
}

export function invalidParams(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
