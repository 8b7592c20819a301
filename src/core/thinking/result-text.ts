/** The output of a tool as a model reads it. */
export function resultText(output: unknown): string {
  if (typeof output === 'string') return output;
  return JSON.stringify(output, withoutMedia) ?? 'null';
}

/** Replaces base64 media in content blocks by a description: a model cannot read base64 text. */
function withoutMedia(this: unknown, key: string, value: unknown): unknown {
  if (key !== 'data' || typeof value !== 'string') return value;
  const { type, mimeType } = this as { readonly type?: unknown; readonly mimeType?: unknown };
  const isMedia = (type === 'image' || type === 'audio') && typeof mimeType === 'string';
  return isMedia ? `(${value.length} characters of base64 are left out)` : value;
}
