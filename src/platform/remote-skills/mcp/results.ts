/** Turns the result of an MCP tool into the output or the failure of a run. */
import type { CallToolResult } from '@modelcontextprotocol/client';
import { isObject } from '../../../kernel/json.ts';
import { canonicalJson } from '../../../kernel/text.ts';
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
  checkBlocks(name, content);
  if (isError === true) throw new RemoteFault(messageOf(name, content), { retryable: true });
  if (structuredContent === undefined) return { content };
  const structured = canonicalJson(structuredContent);
  // Texts are compared: of a value with many members, equality with each of many blocks would take long.
  const others = content.filter((block) => !isAgain(block, structured));
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

/** Throws RemoteFault where a block is none of the protocol's. */
function checkBlocks(tool: string, content: readonly unknown[]): void {
  for (const [i, block] of content.entries()) {
    if (isBlock(block)) continue;
    const where = `the block ${i} of the content of ${tool} is none of the protocol`;
    throw new RemoteFault(`The server does not answer as the protocol says: ${where}`);
  }
}

function isBlock(block: unknown): boolean {
  if (!isObject(block)) return false;
  const hasTexts = (...names: string[]) => names.every((one) => typeof block[one] === 'string');
  switch (block['type']) {
    case 'text':
      return hasTexts('text');
    case 'image':
    case 'audio':
      return hasTexts('data', 'mimeType');
    case 'resource_link':
      return hasTexts('uri', 'name');
    case 'resource':
      return isObject(block['resource']) && typeof block['resource']['uri'] === 'string';
    default:
      return false;
  }
}

/** Whether a block repeats the structured content as text, for older clients. */
function isAgain(block: CallToolResult['content'][number], structured: string): boolean {
  if (block.type !== 'text') return false;
  try {
    return canonicalJson(JSON.parse(block.text)) === structured;
  } catch {
    // It is not JSON, or deeper than an output may be.
    return false;
  }
}

function messageOf(tool: string, content: CallToolResult['content']): string {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n').slice(0, messageCharsMax).trim();
  return text === '' ? `The tool ${tool} failed without a message` : text;
}
