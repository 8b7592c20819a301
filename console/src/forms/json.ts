import { ApiError } from '../api/client.ts';

/** Data as one edits it. */
export const jsonText = (value: unknown): string => JSON.stringify(value, null, 2);

/** What has been written for a field; told as the platform tells its refusals when it is no JSON. */
export function jsonOf<T>(text: string, field: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    const issue = `is not JSON: ${(error as Error).message}`;
    throw new ApiError(400, { message: `${field} ${issue}`, details: [{ field, issue }] });
  }
}
