/** Where the operations of a document are served. */
import { isObject, type Json } from '../../../kernel/json.ts';
import { DocumentError } from './operation.ts';

export interface ServerChoice {
  /** What the operator has set, for all operations; null takes that of the document. */
  readonly baseUrl: string | null;
  /** Where the document came from; relative addresses of servers begin there. */
  readonly documentUrl: string | null;
}

/** The address of a document's operations, without a slash at its end; null where it tells none. */
export function baseUrlOf(document: Json, choice: ServerChoice): string | null {
  if (choice.baseUrl !== null) return trimmed(choice.baseUrl);
  const first = firstServer(document['servers']);
  if (first !== null) return addressOf(first, choice.documentUrl);
  return choice.documentUrl === null ? null : new URL(choice.documentUrl).origin;
}

/**
 * The address of an operation that may name a server of its own. Throws DocumentError for one of another origin, because
 * the credentials of an import are for one service.
 */
export function operationUrlOf(
  base: string,
  owners: readonly Json[],
  { baseUrl, documentUrl }: ServerChoice,
): string {
  if (baseUrl !== null) return base;
  const own = owners.map(({ servers }) => firstServer(servers)).find((server) => server !== null);
  if (own === undefined || own === null) return base;
  const url = addressOf(own, documentUrl ?? base);
  if (url === null) throw new DocumentError('It is at a server without an address');
  if (new URL(url).origin === new URL(base).origin) return url;
  throw new DocumentError(
    `It is at another host, ${new URL(url).host}: import it on its own, with a base_url`,
  );
}

function firstServer(servers: unknown): Json | null {
  const [first] = Array.isArray(servers) ? servers : [];
  return isObject(first) && typeof first['url'] === 'string' ? first : null;
}

/** With the default values of its variables. Null where it is relative to an address that is not known. */
function addressOf(server: Json, documentUrl: string | null): string | null {
  const variables = isObject(server['variables']) ? server['variables'] : {};
  const text = String(server['url']).replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined;
    return isObject(variable) ? String(variable['default'] ?? '') : '';
  });
  if (URL.canParse(text)) return trimmed(text);
  if (documentUrl === null || !URL.canParse(text, documentUrl)) return null;
  return trimmed(new URL(text, documentUrl).href);
}

function trimmed(url: string): string {
  return url.replace(/[?#].*$/, '').replace(/\/+$/, '');
}
