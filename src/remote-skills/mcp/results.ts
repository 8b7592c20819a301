/** What a tool of a server has returned, as the output of a run or as its failure. */
import type { CallToolResult } from '@modelcontextprotocol/client';
import { type CalledTool, RemoteFault } from '../remote-kind.ts';

const messageCharsMax = 4_000;

/**
 * The structured content, or else `{ content }`; `{ content, structuredContent }` where blocks say more than the
 * structured content. Throws RemoteFault for a result that is an error.
 */
export function outputOf(
  { name, output }: Pick<CalledTool, 'name' | 'output'>,
  { structuredContent, content = [], isError }: CallToolResult,
  log: (message: string) => void,
): unknown {
  if (isError === true) throw new RemoteFault(messageOf(name, content), { retryable: true });
  if (structuredContent === undefined) return { content };
  // The text is the structured content again, for clients that know no other.
  const others = content.filter(({ type }) => type !== 'text');
  if (others.length === 0) return structuredContent;
  if (output === null) return { content, structuredContent };
  const types = [...new Set(others.map(({ type }) => type))].join(', ');
  log(`The tool returned ${types} too, for which the schema of its output has no place.`);
  return structuredContent;
}

function messageOf(tool: string, content: CallToolResult['content']): string {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n').slice(0, messageCharsMax).trim();
  return text === '' ? `The tool ${tool} failed without a message` : text;
}
