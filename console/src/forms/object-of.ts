import { ApiError } from '../api/client.ts';
import { parseObject, parseTyped } from './ObjectField.tsx';

/** The object that the user typed; otherwise throws an error in the platform's form. */
export function objectOf(text: string, field: string): Record<string, unknown> {
  const { value, issue } = parseObject(text);
  if (value !== undefined) return value;
  throw refusal(field, issue);
}

/** The list that the user typed; otherwise throws an error in the platform's form. `example` is one to write. */
export function listOf(text: string, field: string, example: string): unknown[] {
  if (text.trim() === '') return [];
  const { value, issue = `This is no list: write ${example}` } = parseTyped(text);
  if (Array.isArray(value)) return value;
  throw refusal(field, issue);
}

function refusal(field: string, issue: string): ApiError {
  return new ApiError(400, { message: issue, details: [{ field, issue }] });
}
