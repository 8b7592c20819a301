/** The secrets of remote sources, which are stored encrypted and decrypted only for calls. */
import {
  decryptValue,
  encryptValue,
  sourceContext,
} from '../../adapters/database/sealed-values.ts';
import type { Cipher } from '../../kernel/encryption.ts';
import { isObject, type Json } from '../../kernel/json.ts';
import { organizationsOfSource } from './organizations.ts';
import { secretsInArgs, secretsInUrl } from './recognize-secrets.ts';
import { RemoteFault, type RemoteSource } from './remote-kind.ts';
import type { SourceRow } from './sources.store.ts';

/** Throws `409 conflict` where there is no key to encrypt them with. */
export function sealSecrets(
  cipher: Cipher | null,
  source: Pick<SourceRow, 'id'>,
  secrets: Json,
): string | null {
  if (Object.keys(secrets).length === 0) return null;
  const context = sourceContext(source);
  return encryptValue(cipher, JSON.stringify(secrets), context, 'Credentials');
}

/** Throws RemoteFault where the secrets cannot be decrypted. */
export function openSource(
  cipher: Cipher | null,
  row: SourceRow,
  document: string | null = null,
): RemoteSource {
  const { id, name } = row;
  const settings = JSON.parse(row.settings) as Json;
  const about = JSON.parse(row.about) as Json;
  const organizations = organizationsOfSource(row);
  return { id, name, settings, secrets: openSecrets(cipher, row), document, about, organizations };
}

function openSecrets(cipher: Cipher | null, row: SourceRow): Json {
  if (row.secrets === null) return {};
  const sealed = { text: row.secrets, context: sourceContext(row) };
  const otherKey = 'they were stored under another ENCRYPTION_KEY; store them again';
  return openJson(cipher, sealed, `credentials of ${row.name}`, otherKey);
}

/** What was stored as encrypted JSON. Throws RemoteFault where it cannot be decrypted. */
export function openJson<T>(...given: Parameters<typeof decryptValue>): T {
  const opened = decryptValue(...given);
  if ('value' in opened) return JSON.parse(opened.value) as T;
  throw new RemoteFault(opened.fault, { code: 'missing_credentials' });
}

/** Characters of a secret that is kept out of texts. */
const secretCharsMin = 8;

/**
 * The texts of a source's secrets, and their words: `Bearer x` and `x`; the queries of its addresses; and what looks like
 * a secret in its addresses and arguments.
 */
export function secretTextsOf({ secrets, settings }: RemoteSource): string[] {
  const texts = Object.values(secrets).flatMap((group) =>
    typeof group === 'string' ? [group] : isObject(group) ? Object.values(group) : [],
  );
  const { url, base_url: base, args } = settings;
  const words = texts.flatMap((text) =>
    typeof text === 'string' ? [text, ...text.split(' ')] : [],
  );
  const addresses = [url, base].map(String);
  const queries = addresses.map((one) => URL.parse(one)?.search ?? '');
  const inArgs = Array.isArray(args) ? secretsInArgs(args.map(String)) : [];
  return [...words, ...queries, ...addresses.flatMap(secretsInUrl), ...inArgs].filter(
    (text) => text.length >= secretCharsMin,
  );
}
