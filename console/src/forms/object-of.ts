import { ApiError } from '../api/client.ts';
import { parseObject } from './ObjectField.tsx';

/** The object that the user typed; otherwise throws an error in the platform's form. */
export function objectOf(text: string, field: string): Record<string, unknown> {
  const { value, issue } = parseObject(text);
  if (value !== undefined) return value;
  throw new ApiError(400, { message: issue, details: [{ field, issue }] });
}
