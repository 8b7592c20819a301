/** A job as the result of a tool's call. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { jobView } from '../jobs/job-views.ts';
import type { Issue } from '../kernel/errors.ts';
import { objectOf } from '../kernel/json.ts';
import type { SkillTool } from './tools.ts';

export type EndedJob = ReturnType<typeof jobView>;

/** What a call's `_meta` tells of its job. */
function jobMeta({ job_id, conversation_id }: Pick<EndedJob, 'job_id' | 'conversation_id'>) {
  return { 'skillwright/job_id': job_id, 'skillwright/conversation_id': conversation_id };
}

/** The result of a job that has ended. A failed skill is a result too: the model reads why. */
export function resultOf(tool: SkillTool, job: EndedJob): CallToolResult {
  const _meta = jobMeta(job);
  if (job.status !== 'completed') {
    const { code = 'cancelled', message = 'The job was cancelled' } = job.error ?? {};
    return {
      ...errorResult(`${code}: ${message}`),
      _meta: { ..._meta, 'skillwright/error': code },
    };
  }
  const { output } = job;
  if (tool.skill.mcp?.content === true) return { content: blocksOf(output), _meta };
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return { content: [{ type: 'text', text }], ...structured(tool, output), _meta };
}

/** A result that tells the model what went wrong. */
export function errorResult(text: string, details: readonly Issue[] = []): CallToolResult {
  const lines = details.map(({ field, issue }) => `${field} ${issue}`);
  return { content: [{ type: 'text', text: [text, ...lines].join('\n') }], isError: true };
}

/** A tool that lists no output schema may give structured content too, where it is an object. */
function structured(
  { listed }: SkillTool,
  output: unknown,
): Pick<CallToolResult, 'structuredContent'> {
  const isGiven = listed.outputSchema !== undefined || objectOf(output) !== null;
  return isGiven
    ? { structuredContent: output as NonNullable<CallToolResult['structuredContent']> }
    : {};
}

/** The blocks of an output that holds them. The SDK refuses a result whose blocks are malformed. */
function blocksOf(output: unknown): CallToolResult['content'] {
  const content = objectOf(output)?.['content'];
  if (Array.isArray(content)) return content as CallToolResult['content'];
  return [{ type: 'text', text: JSON.stringify(output) }];
}
