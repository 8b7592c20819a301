/** The display form of a message's content. No I/O. */
import type { Message } from '../api/conversations.ts';
import { onlyText } from '../ui/Value.tsx';

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

/** The parsed content of a tool's message; undefined for a cut or different one. */
export function toolUseOf({ content }: Message): ToolUse | undefined {
  const value = parsed(content) as Partial<ToolUse> | undefined;
  return typeof value?.tool === 'string' ? (value as ToolUse) : undefined;
}

export type Content =
  | {
      readonly kind: 'text';
      readonly text: string;
      readonly name?: string;
      /** Ids of files, or urls, that the task is about. */
      readonly files?: readonly string[];
    }
  | { readonly kind: 'data'; readonly value: unknown };

/** An object whose only member is a text is shown as that text, such as a task or an answer. */
export function contentOf({ content }: Message): Content {
  const value = parsed(content);
  if (value === undefined) return { kind: 'text', text: content };
  const { name, text } = onlyText(value);
  if (text !== undefined) return { kind: 'text', text, ...(name !== undefined && { name }) };
  return taskWithFiles(value) ?? { kind: 'data', value };
}

function taskWithFiles(value: unknown): Content | undefined {
  const { task, files, ...others } = (value ?? {}) as Record<string, unknown>;
  const isTask = typeof task === 'string' && Object.keys(others).length === 0;
  if (!isTask || !Array.isArray(files) || !files.every((one) => typeof one === 'string')) {
    return undefined;
  }
  return { kind: 'text', text: task, name: 'task', files };
}

/** A shorter text is shown with the other members. */
const tellingLength = 16;

/**
 * The beginning of a message in a line. It may be JSON that is cut off: where it begins with a text
 * that says something, that; else the JSON as it is.
 */
export function openingWords(opening: string | null | undefined): string {
  const text = opening?.trim() ?? '';
  const [whole = '', value = ''] = /^\{\s*"[^"]*"\s*:\s*"((?:[^"\\]|\\.)*)"?\}?/.exec(text) ?? [];
  const isTold = value.length >= tellingLength || whole === text || /^\{"task":"/.test(text);
  if (value === '' || !isTold) return text;
  try {
    return JSON.parse(`"${value}"`) as string;
  } catch {
    return value;
  }
}
