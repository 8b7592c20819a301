import type { ComponentProps } from 'react';
import { TextAreaField } from '../ui/Field.tsx';

/** An object from the text that the user typed, or what is wrong with it. */
export function parseObject(
  text: string,
): { value: Record<string, unknown>; issue?: never } | { issue: string; value?: never } {
  if (text.trim() === '') return { value: {} };
  const { value, issue } = parseTyped(text);
  if (issue !== undefined) return { issue };
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return { value: value as Record<string, unknown> };
  }
  return { issue: 'This is JSON, but not an object: write {"name": "value"}' };
}

/** The JSON that the user typed, or what is wrong with it. */
export function parseTyped(text: string): { value?: unknown; issue?: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { issue: `This is not JSON yet: ${error instanceof Error ? error.message : error}` };
  }
}

/** Data as one edits it. */
export const jsonText = (value: unknown): string => JSON.stringify(value, null, 2);

/** JSON to be written. */
export function ObjectField(props: ComponentProps<typeof TextAreaField>) {
  return <TextAreaField rows={5} spellCheck={false} className="font-mono text-xs" {...props} />;
}
