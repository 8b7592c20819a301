/** What a message says, as it is best shown. No I/O. */
import type { Message } from '../api/conversations.ts';

export interface ToolUse {
  readonly tool: string;
  readonly input: unknown;
  readonly output?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
}

function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a tool's message tells; undefined for one that was cut, or says something else. */
export function toolUseOf({ content }: Message): ToolUse | undefined {
  const value = parsed(content) as Partial<ToolUse> | undefined;
  return typeof value?.tool === 'string' ? (value as ToolUse) : undefined;
}

export type Content =
  | { readonly kind: 'text'; readonly text: string; readonly name?: string }
  | { readonly kind: 'data'; readonly value: unknown };

/** Data stays data, but an object with a single text in it is that text: a task, an answer. */
export function contentOf({ content }: Message): Content {
  const value = parsed(content);
  if (value === undefined) return { kind: 'text', text: content };
  const entries = Array.isArray(value) ? [] : Object.entries(value as object);
  const [name, text] = entries[0] ?? [];
  if (entries.length === 1 && typeof text === 'string') {
    return { kind: 'text', text, ...(name !== undefined && { name }) };
  }
  return { kind: 'data', value };
}
