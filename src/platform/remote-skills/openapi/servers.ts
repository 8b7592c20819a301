/** Where the operations of a document are served. */
import { isObject, type Json } from '../../../kernel/json.ts';
import { DocumentError, methods } from './operation.ts';
import { resolveObject } from './references.ts';

export interface ServerChoice {
  /** What the operator has set, for all operations; null takes that of the document. */
  readonly baseUrl: string | null;
  /** Where the document came from; relative addresses of servers begin there. */
  readonly documentUrl: string | null;
}

/** The address of a document's operations, without a slash at its end; null where it names none. */
export function baseUrlOf(document: Json, choice: ServerChoice): string | null {
  if (choice.baseUrl !== null) return trimmed(choice.baseUrl);
  const [first] = serversOf(document);
  if (first !== undefined) return addressOf(first, choice.documentUrl);
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
  const [own] = owners.flatMap(serversOf);
  if (own === undefined) return base;
  const url = addressOf(own, documentUrl ?? base);
  if (url === null) throw new DocumentError('It is at a server without an address');
  if (new URL(url).origin === new URL(base).origin) return url;
  throw new DocumentError(
    `It is at another host, ${new URL(url).host}: import it on its own, with a base_url`,
  );
}

/** The addresses of all servers at which operations of a document may be, with their variables as they stand. */
export function serverAddresses(document: Json): string[] {
  const { paths, basePath } = document;
  const items = Object.values(isObject(paths) ? paths : {}).flatMap((item) =>
    resolved(document, item),
  );
  const operations = items.flatMap((item) =>
    methods.flatMap((method) => resolved(document, item[method])),
  );
  const addresses = [document, ...items, ...operations]
    .flatMap(serversOf)
    .map(({ url }) => String(url));
  if (typeof basePath === 'string') addresses.push(basePath);
  // Of a relative one the path is checked, at any host.
  return addresses.map(
    (address) => URL.parse(address, 'https://document.invalid')?.href ?? address,
  );
}

/** Empty for a reference that leads to no object: its operations are left out. */
function resolved(document: Json, value: unknown): Json[] {
  try {
    return [resolveObject(document, value) ?? []].flat();
  } catch (error) {
    if (error instanceof DocumentError) return [];
    throw error;
  }
}

/** The servers of a document, a path or an operation; only the first of each is used. */
function serversOf({ servers }: Json): Json[] {
  const listed: unknown[] = Array.isArray(servers) ? servers : [];
  return listed.filter(isObject).filter(({ url }) => typeof url === 'string');
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
