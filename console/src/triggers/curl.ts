/** The command that calls a trigger. */
import type { Trigger } from '../api/triggers.ts';
import { quoted } from '../ui/quoted.ts';

/** Where calls go, as this browser reaches the platform; `path` ends with the token. */
export const callUrl = (path: string): string =>
  `${location.origin}${new URL(path, location.origin).pathname}`;

/** What stands for a token that nobody can show again. */
export const unknownToken = 'TOKEN';
/** Where a call lies that goes through a mapping. */
export const eventFile = 'event.json';

export const urlShape = (): string => callUrl(`/api/webhooks/agent/${unknownToken}`);

/**
 * Without a mapping the body of a call is the input, so the skill's example is sent. What a mapping
 * reads nobody can tell: that lies in a file.
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
