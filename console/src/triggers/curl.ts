/** The command that calls a trigger. */
import type { Trigger } from '../api/triggers.ts';

/** Where calls go, as this browser reaches the platform; `path` ends with the token. */
export const callUrl = (path: string): string =>
  `${location.origin}${new URL(path, location.origin).pathname}`;

/** What stands for a token that nobody can show again. */
export const unknownToken = 'TOKEN';
export const urlShape = (): string => callUrl(`/api/webhooks/agent/${unknownToken}`);

/** Within single quotes of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

export function curlOf(
  { has_signing_secret }: Pick<Trigger, 'has_signing_secret'>,
  url: string,
  body: unknown,
): string {
  const json = quoted(JSON.stringify(body));
  if (!has_signing_secret) {
    return [
      `curl -i ${quoted(url)} \\`,
      `  -H 'content-type: application/json' \\`,
      `  -d ${json}`,
    ].join('\n');
  }
  return [
    `BODY=${json}`,
    `SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/.* //')`,
    `curl -i ${quoted(url)} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -H "x-hub-signature-256: sha256=$SIGNATURE" \\`,
    `  -d "$BODY"`,
  ].join('\n');
}

/** What to try a trigger with: without a mapping the body is the input, with one nobody can tell. */
export const sampleBody = ({ mapping }: Pick<Trigger, 'mapping'>, example: unknown): unknown =>
  mapping === null ? (example ?? {}) : {};
