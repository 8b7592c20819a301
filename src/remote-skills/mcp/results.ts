/** What a tool of a server has returned, as the output of a run or as its failure. */
import type { CallToolResult } from '@modelcontextprotocol/client';
import { RemoteFault } from '../remote-kind.ts';

const messageCharsMax = 4_000;

/** The structured content, or else `{ content }`. Throws RemoteFault for a result that is an error. */
export function outputOf(tool: string, result: CallToolResult): unknown {
  const { structuredContent, content, isError } = result;
  if (isError === true) throw new RemoteFault(messageOf(tool, content), { retryable: true });
  return structuredContent ?? { content };
}

function messageOf(tool: string, content: CallToolResult['content']): string {
  const texts = (content ?? []).flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n').slice(0, messageCharsMax).trim();
  return text === '' ? `The tool ${tool} failed without a message` : text;
}
