/** The command that calls a trigger. */
import type { Trigger } from '../api/triggers.ts';
import { quoted } from '../ui/quoted.ts';

/** Where calls go, as this browser reaches the platform; `path` ends with the token. */
export const callUrl = (path: string): string =>
  `${location.origin}${new URL(path, location.origin).pathname}`;

/** Placeholder for a token, which the platform shows only once. */
export const unknownToken = 'TOKEN';
/** The file with the body of a call that a mapping reads. */
export const eventFile = 'event.json';

export const urlShape = (): string => callUrl(`/api/webhooks/agent/${unknownToken}`);

/**
 * Without a mapping the body of a call is the input, so the skill's example is sent. The body that a
 * mapping expects is unknown, so the command reads it from a file.
 */
export function curlOf(
  { has_signing_secret, mapping }: Pick<Trigger, 'has_signing_secret' | 'mapping'>,
  url: string,
  example: unknown,
): string {
  const json = mapping === null ? quoted(JSON.stringify(example ?? {})) : null;
  if (!has_signing_secret) {
    return [
      `curl -i ${quoted(url)} \\`,
      `  -H 'content-type: application/json' \\`,
      `  -d ${json ?? `@${eventFile}`}`,
    ].join('\n');
  }
  return [
    `BODY=${json ?? `$(cat ${eventFile})`}`,
    `SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/.* //')`,
    `curl -i ${quoted(url)} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -H "x-hub-signature-256: sha256=$SIGNATURE" \\`,
    `  -d "$BODY"`,
  ].join('\n');
}
