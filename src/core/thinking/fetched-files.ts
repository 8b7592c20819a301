/**
 * Files behind urls that a task names. The platform fetches them through the guarded way out, once for a job, and keeps them
 * as files of the job: a repeated attempt, and a job that goes on from this one, reads the same bytes.
 */
import { PassThrough } from 'node:stream';
import { EgressError } from '../../adapters/egress/egress-error.ts';
import type { EgressRequest } from '../../adapters/egress/guarded-fetch.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { fileName } from '../../kernel/file-name.ts';
import type { FileRow } from '../files/files.ts';
import { write } from '../jobs/runs/run-files.ts';
import { jobsOnRecord } from '../journal/taken-over.ts';
import { type ThinkingAttempt, userOf } from './attempt.ts';
import { stopped, ThinkingError } from './thinking-error.ts';

const fetchMs = 30_000;
const redirectsMax = 5;
const bytesMax = 20 * 1024 * 1024;

/** The file behind a url. Rejects with a ThinkingError. */
export async function fetchFile(
  attempt: ThinkingAttempt,
  url: string,
  signal: AbortSignal,
): Promise<FileRow> {
  const { parts, run } = attempt;
  const { job } = run;
  const known = await parts.files.fetchedBy(jobsOnRecord(job), url);
  if (known !== undefined) return known;
  const most = Math.min(bytesMax, parts.files.bytesMax);
  await kept(url, parts.files.requireRoom(job.organization_id, 1));
  const owner = { organizationId: job.organization_id, userId: userOf(attempt) };
  const from = { ...owner, jobId: job.id, sourceUrl: url };
  // To disk as it arrives: a slow server takes no memory that others wait for.
  const stream = new PassThrough({ highWaterMark: 0 });
  stream.on('error', () => {});
  const keeping = kept(url, parts.files.create(from, fileName(decodedPath(url)), stream));
  keeping.catch(() => {});
  try {
    const onPiece = (piece: Buffer) => write({ stream, kept: keeping }, piece);
    const { status } = await fetchOutside(parts, url, { maxBytes: most, onPiece }, signal);
    if (status < 200 || status > 299) {
      const isTemporary = status >= 500 || status === 408 || status === 429;
      throw failed(url, `it was answered with status ${status}`, isTemporary);
    }
    stream.end();
    return await keeping;
  } catch (error) {
    stream.destroy(error as Error);
    throw error;
  }
}

/** What keeps a file; fails as the fetch does where there is no room or no storage for it. */
async function kept<T>(url: string, keeping: Promise<T>): Promise<T> {
  try {
    return await keeping;
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    throw failed(url, error.message, error.status >= 500);
  }
}

async function fetchOutside(
  { context }: ThinkingAttempt['parts'],
  url: string,
  body: Pick<EgressRequest, 'maxBytes' | 'onPiece'>,
  signal: AbortSignal,
) {
  // Loaded by the first url that a task names.
  const { egressWith } = await import('../../adapters/egress/skills-egress.ts');
  try {
    const bounds = { ...body, timeoutMs: fetchMs, redirects: redirectsMax };
    return await egressWith(context.config.skillsAllowCidrs ?? '').request(url, {
      ...bounds,
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw stopped();
    if (!(error instanceof EgressError)) throw error;
    if (error.cause instanceof ThinkingError) throw error.cause;
    throw failed(url, error.message, error.retryable);
  }
}

function failed(url: string, why: string, isTemporary: boolean): ThinkingError {
  const code = isTemporary ? 'upstream_unavailable' : 'skill_execution_failed';
  return new ThinkingError(
    code,
    `The file ${url.slice(0, 200)} cannot be fetched: ${why}`,
    isTemporary,
  );
}

/** The path of a url as people read it. */
function decodedPath(url: string): string {
  const { pathname = '' } = URL.parse(url) ?? {};
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname;
  }
}
