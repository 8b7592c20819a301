/** Turns the result of an MCP tool into the output or the failure of a run. */
import { isDeepStrictEqual } from 'node:util';
import type { CallToolResult } from '@modelcontextprotocol/client';
import { isObject, parsed } from '../../kernel/json.ts';
import { besideField, mayHaveBeside } from '../definitions.ts';
import { type CalledTool, RemoteFault } from '../remote-kind.ts';

const messageCharsMax = 4_000;

/**
 * The structured content, or else `{ content }`. Where blocks say more than the structured content, it is `{ content,
 * structuredContent }`, or of a tool with an output schema the structured content with the blocks in a field. Throws
 * RemoteFault for a result that is an error.
 */
export function outputOf(
  { name, output }: Pick<CalledTool, 'name' | 'output'>,
  { structuredContent, content = [], isError }: CallToolResult,
  log: (message: string) => void,
): unknown {
  if (isError === true) throw new RemoteFault(messageOf(name, content), { retryable: true });
  if (structuredContent === undefined) return { content };
  const others = content.filter((block) => !isAgain(block, structuredContent));
  if (output !== null && mayHaveBeside(output) && isObject(structuredContent)) {
    // A server that gives such a field without saying so would pass it by the schema.
    const { [besideField]: _, ...own } = structuredContent;
    return others.length === 0 ? own : { ...own, [besideField]: others };
  }
  if (others.every(({ type }) => type === 'text')) return structuredContent;
  if (output === null) return { content, structuredContent };
  const types = [...new Set(others.map(({ type }) => type))].join(', ');
  log(`The tool returned ${types} too, for which the schema of its output has no place.`);
  return structuredContent;
}

/** Whether a block repeats the structured content as text, for older clients. */
function isAgain(block: CallToolResult['content'][number], structured: unknown): boolean {
  if (block.type !== 'text') return false;
  return isDeepStrictEqual(parsed(block.text), structured);
}

function messageOf(tool: string, content: CallToolResult['content']): string {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n').slice(0, messageCharsMax).trim();
  return text === '' ? `The tool ${tool} failed without a message` : text;
}
