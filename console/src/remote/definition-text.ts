/** What is pinned of a version, and what its server says of its effects, as texts. */
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
    `output: ${output === null ? 'none told' : JSON.stringify(output, null, 2)}`,
  ];
  return visibleText(parts.join('\n'));
}

/** With invisible characters written out, because instructions for models may hide in them. */
export function visibleText(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cn}]/gu, written);
}

const written = (char: string) =>
  `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

const hints = [
  ['readOnlyHint', 'reads only', 'writes'],
  ['destructiveHint', 'destructive', 'not destructive'],
  ['idempotentHint', 'idempotent', 'not idempotent'],
  ['openWorldHint', 'open world', 'closed world'],
] as const;

/** What the server claims of a tool's effects; what it does not say is not there. */
export function claimsOf(annotations: Readonly<Record<string, unknown>>): string[] {
  const claims = hints.flatMap(([name, yes, no]) => {
    const value = annotations[name];
    return typeof value === 'boolean' ? [value ? yes : no] : [];
  });
  return annotations['deprecated'] === true ? [...claims, 'deprecated'] : claims;
}
