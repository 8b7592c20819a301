/** Errors of the client as sentences with an exit code. */
import { ErasureHeldError, JobFailedError, SkillwrightError } from '@skillwright/client';
import { CliError, exitCodes } from './exit-codes.ts';

/** What to do about a refusal, by its code. */
const remedies: Readonly<Record<string, string>> = {
  authentication_required: 'Give a key with --key, or store one with skillwright login.',
  invalid_api_key: 'Give another key with --key, or store one with skillwright login.',
  api_key_expired: 'Make a new one with skillwright keys create.',
  invalid_admin_secret: 'Give the admin secret with --admin-secret or ADMIN_SECRET.',
  insufficient_scope: 'A key with this scope is made by skillwright keys create --scopes.',
};

/** The error as one that ends the command; others than the client's are returned as they are. */
export function asCliError(error: unknown): unknown {
  if (error instanceof JobFailedError) return jobFailed(error.jobId, error);
  if (error instanceof ErasureHeldError) return new CliError(error.message, exitCodes.failed);
  if (!(error instanceof SkillwrightError)) return error;
  if (error.status === 0) {
    const message = `${error.message}. Is the platform started, and is its address right (--url)?`;
    return new CliError(message, exitCodes.unreachable);
  }
  const remedy = remedies[error.code];
  const message = remedy === undefined ? error.message : `${asSentence(error.message)} ${remedy}`;
  const isRefused = error.status === 401 || error.status === 403;
  return new CliError(message, isRefused ? exitCodes.refused : exitCodes.failed);
}

/** A job that ended without an output. */
export function jobFailed(id: string, error: { code: string; message: string }): CliError {
  const message = `The job ${id} failed with ${error.code}: ${error.message}`;
  return new CliError(message, exitCodes.jobFailed);
}

/** With the full stop that a message may lack. */
export function asSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
