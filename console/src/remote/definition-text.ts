/** The pinned definition of a version, and its server's claims about its effects, as texts. */
import type { Schema } from '../api/client.ts';

/** All of it. */
export function definitionText({
  title,
  description,
  input,
  output,
  request,
}: Schema<'PinnedRemoteSkillVersion'>['definition']): string {
  const parts = [
    `title: ${title ?? ''}`,
    `description: ${description}`,
    ...(request === null ? [] : [`request: ${JSON.stringify(request, null, 2)}`]),
    `input: ${JSON.stringify(input, null, 2)}`,
    `output: ${output === null ? 'none' : JSON.stringify(output, null, 2)}`,
  ];
  return visibleText(parts.join('\n'));
}

/** With invisible characters written out, because instructions for models may hide in them. */
export function visibleText(text: string): string {
  return text.replace(
    /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u{E0000}-\u{E0FFF}]|[\ufe00-\ufe0f]{2,}/gu,
    (hidden) => Array.from(hidden, written).join(''),
  );
}

const written = (char: string) =>
  `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

const hints = [
  ['readOnlyHint', 'reads only', 'writes'],
  ['destructiveHint', 'destructive', 'not destructive'],
  ['idempotentHint', 'idempotent', 'not idempotent'],
  ['openWorldHint', 'open world', 'closed world'],
] as const;

/** The server's claims about a tool's effects; empty where it makes none. */
export function claimsOf(annotations: Readonly<Record<string, unknown>>): string[] {
  const claims = hints.flatMap(([name, yes, no]) => {
    const value = annotations[name];
    return typeof value === 'boolean' ? [value ? yes : no] : [];
  });
  return annotations['deprecated'] === true ? [...claims, 'deprecated'] : claims;
}
