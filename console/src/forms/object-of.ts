import { ApiError } from '../api/client.ts';
import { parseObject } from './ObjectField.tsx';

/** The object that was written for a field; told as the platform tells its refusals when it is none. */
export function objectOf(text: string, field: string): Record<string, unknown> {
  const { value, issue } = parseObject(text);
  if (value !== undefined) return value;
  throw new ApiError(400, { message: issue, details: [{ field, issue }] });
}
