/** JSON that has not been validated. */
export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value as an object; null when it is not one. */
export function objectOf(value: unknown): Json | null {
  return isObject(value) ? value : null;
}

/** The parsed text; undefined when it is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
