/** The headers of a job key: `x-job-key`, `x-job-key-mode`, `x-debounce-seconds` and `x-debounce-max-seconds`. */
import type { FastifyRequest } from 'fastify';
import { OnceGiven, onceGiven } from '../../../adapters/http/idempotency-key.ts';
import { invalid } from '../../../kernel/errors.ts';
import {
  debounceMax,
  debounceTotalMax,
  type JobKey,
  type JobKeyMode,
  jobKeyMax,
  jobKeyModes,
  jobKeyOf,
} from './job-keys.ts';

export const jobKeyHeaders = {
  'x-job-key': OnceGiven(
    `One of a kind: 1 to ${jobKeyMax} visible ASCII characters or spaces. What the request does to an earlier job of the organization with the same skill and key, x-job-key-mode says. Not together with x-conversation-id.`,
  ),
  'x-job-key-mode': OnceGiven(
    'replace, the default: an earlier job that has not begun is cancelled with the code replaced. skip: while an earlier one has not ended, the answer is that job. debounce: an earlier one that has not begun gets this input, and begins later.',
  ),
  'x-debounce-seconds': OnceGiven(
    `With the mode debounce: the job begins once no request with its key has come for so many seconds, 1 to ${debounceMax}.`,
  ),
  'x-debounce-max-seconds': OnceGiven(
    `With the mode debounce: the job begins at most so many seconds after the first of these requests, up to ${debounceTotalMax}; ten times x-debounce-seconds by default.`,
  ),
};

/** The names of the headers, for refusals of their values. */
const names = {
  key: 'x-job-key',
  debounceSeconds: 'x-debounce-seconds',
  debounceMaxSeconds: 'x-debounce-max-seconds',
};

/** The key of a request, undefined without one; throws `400` for a malformed one. */
export function jobKeyOfHeaders(request: FastifyRequest): JobKey | undefined {
  const key = onceGiven(request, names.key);
  const mode = onceGiven(request, 'x-job-key-mode');
  const calm = onceGiven(request, names.debounceSeconds);
  const most = onceGiven(request, names.debounceMaxSeconds);
  if (key !== undefined && !/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw invalid(names.key, `must be 1 to ${jobKeyMax} visible ASCII characters or spaces`);
  }
  if (mode !== undefined && !(jobKeyModes as readonly string[]).includes(mode)) {
    throw invalid('x-job-key-mode', `must be one of ${jobKeyModes.join(', ')}`);
  }
  const given = {
    key,
    mode: mode as JobKeyMode | undefined,
    debounceSeconds: secondsOf(names.debounceSeconds, calm, debounceMax),
    debounceMaxSeconds: secondsOf(names.debounceMaxSeconds, most, debounceTotalMax),
  };
  return jobKeyOf(given, names);
}

function secondsOf(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  const seconds = /^[1-9]\d{0,6}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= most) return seconds;
  throw invalid(name, `must be an integer from 1 to ${most}`);
}
