/** The output of a tool as a model reads it. */
export function resultText(output: unknown): string {
  if (typeof output === 'string') return output;
  return JSON.stringify(output, withoutMedia) ?? 'null';
}

/** Base64 says nothing to a model: images and sound in blocks of content are named in its place. */
function withoutMedia(this: unknown, key: string, value: unknown): unknown {
  if (key !== 'data' || typeof value !== 'string') return value;
  const { type, mimeType } = this as { readonly type?: unknown; readonly mimeType?: unknown };
  const isMedia = (type === 'image' || type === 'audio') && typeof mimeType === 'string';
  return isMedia ? `(${value.length} characters of base64 are left out)` : value;
}
