/** A job as the result of a tool's call. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { filesNamedIn } from '../../core/files/references.ts';
import type { jobView } from '../../core/jobs/job-views.ts';
import type { Issue, RunErrorCode } from '../../kernel/errors.ts';
import { type Json, objectOf } from '../../kernel/json.ts';
import { type Block, withFileBlocks } from './result-files.ts';
import { besideField, outputSchemaOf, type ResultSkill } from './tools.ts';

const internalError = -32_603;
const ofPlatform: ReadonlySet<RunErrorCode> = new Set(['worker_lost', 'replay_diverged']);

export type EndedJob = ReturnType<typeof jobView>;

/** What a call's `_meta` tells of its job. */
function jobMeta({ job_id, conversation_id }: Pick<EndedJob, 'job_id' | 'conversation_id'>) {
  return { 'skillwright/job_id': job_id, 'skillwright/conversation_id': conversation_id };
}

/** What the platform has done wrong, so that it is no result of the skill; JSON-RPC's internal error. */
export function errorOf({ error, ...job }: EndedJob) {
  if (error === null || !ofPlatform.has(error.code)) return undefined;
  return {
    code: internalError,
    message: error.message,
    data: { error: error.code, ...jobMeta(job) },
  };
}

/**
 * The result of a job that has ended, with blocks for the files that its output names. A failed skill is a result too: the
 * model reads why.
 */
export function resultOf(
  skill: ResultSkill | undefined,
  job: EndedJob,
  files: ReadonlyMap<string, Block>,
): CallToolResult {
  const _meta = jobMeta(job);
  if (job.status !== 'completed') {
    const { code = 'cancelled', message = 'The job was cancelled' } = job.error ?? {};
    return {
      ...errorResult(`${code}: ${message}`),
      _meta: { ..._meta, 'skillwright/error': code },
    };
  }
  const { output } = job;
  if (skill?.mcp?.content === true) return { ...blocksOf(output, files), _meta };
  if (skill?.mcp?.content === 'beside') return { ...besideOf(output, files), _meta };
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  const isStructured = outputSchemaOf(skill) !== undefined || objectOf(output) !== null;
  const content = [{ type: 'text' as const, text }, ...files.values()];
  return { content, ...(isStructured ? { structuredContent: output as Json } : {}), _meta };
}

/** An output with blocks beside it. */
function besideOf(
  output: unknown,
  files: ReadonlyMap<string, Block>,
): Pick<CallToolResult, 'content' | 'structuredContent'> {
  const { [besideField]: blocks, ...structuredContent } = objectOf(output) ?? {};
  const text = { type: 'text' as const, text: JSON.stringify(structuredContent) };
  const others = Array.isArray(blocks) ? withFileBlocks(blocks, files) : [];
  const named = filesNamedIn(structuredContent).flatMap((id) => files.get(id) ?? []);
  return { content: [text, ...others, ...named], structuredContent };
}

/** A result that tells the model what went wrong. */
export function errorResult(text: string, details: readonly Issue[] = []): CallToolResult {
  const lines = details.map(({ field, issue }) => `${field} ${issue}`);
  return { content: [{ type: 'text', text: [text, ...lines].join('\n') }], isError: true };
}

/**
 * An output that is `{ content }` with blocks, or `{ content, structuredContent }`, as the result that it says; any other
 * one as structured content. The SDK refuses a result whose blocks are malformed.
 */
function blocksOf(
  output: unknown,
  files: ReadonlyMap<string, Block>,
): Pick<CallToolResult, 'content' | 'structuredContent'> {
  const fields = objectOf(output);
  const { content, structuredContent } = fields ?? {};
  if (!Array.isArray(content)) {
    const text = { type: 'text' as const, text: JSON.stringify(output) };
    return { content: [text], ...(fields === null ? {} : { structuredContent: fields }) };
  }
  const structured = objectOf(structuredContent);
  return {
    content: withFileBlocks(content, files),
    ...(structured === null ? {} : { structuredContent: structured }),
  };
}
