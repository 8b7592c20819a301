/** How values are written into paths, queries, headers and cookies (OpenAPI 3.1, "Style Values"; RFC 6570). */
import { isObject, type Json } from '../../../kernel/json.ts';
import type { PlannedParameter } from './operation.ts';

/** What says how a value is written. */
export type Style = Pick<PlannedParameter, 'name' | 'style' | 'explode' | 'allowReserved'>;

/** Levels of an object in `deepObject`. */
const deepMax = 8;

/** What stands for the parameter in a path. */
export function pathText(value: unknown, { name, style, explode }: Style): string {
  const encoded = encodeAll;
  if (style === 'label') return `.${joined(value, explode ? '.' : ',', explode, encoded)}`;
  if (style !== 'matrix') return joined(value, ',', explode, encoded);
  const key = encodeAll(name);
  if (!explode || !isCompound(value)) return `;${key}=${joined(value, ',', false, encoded)}`;
  if (isObject(value)) return `;${joined(value, ';', true, encoded)}`;
  return (value as unknown[]).map((item) => `;${key}=${encodeAll(textOf(item))}`).join('');
}

/** What stands for the parameter in a header. */
export function headerText(value: unknown, { explode }: Pick<Style, 'explode'>): string {
  return joined(value, ',', explode, (text) => text);
}

const delimiters: Readonly<Record<string, string>> = {
  spaceDelimited: '%20',
  pipeDelimited: '%7C',
};

/** The parameter's parts of a query or a form, each `name=value`. */
export function queryParts(value: unknown, style: Style): string[] {
  const encoded = style.allowReserved ? encodeQuery : encodeAll;
  const key = encodeAll(style.name);
  if (style.style === 'deepObject' && isCompound(value)) {
    return deepParts(style.name, value, encoded, 1);
  }
  if (!isCompound(value)) return [`${key}=${encoded(textOf(value))}`];
  if (!style.explode) {
    const delimiter = delimiters[style.style] ?? ',';
    return [`${key}=${joined(value, delimiter, false, encoded)}`];
  }
  if (isObject(value)) {
    return members(value).map(([name, one]) => `${encodeAll(name)}=${encoded(textOf(one))}`);
  }
  return value.map((item) => `${key}=${encoded(textOf(item))}`);
}

function deepParts(
  name: string,
  value: unknown,
  encoded: (text: string) => string,
  level: number,
): string[] {
  if (!isCompound(value) || level > deepMax) {
    return [`${encodeName(name)}=${encoded(textOf(value))}`];
  }
  if (!isObject(value)) {
    return value.flatMap((item) => {
      const inner = isCompound(item) ? `${name}[]` : name;
      return deepParts(inner, item, encoded, level + 1);
    });
  }
  return members(value).flatMap(([member, one]) =>
    deepParts(`${name}[${member}]`, one, encoded, level + 1),
  );
}

/** Brackets stay as they are: services look for them. */
function encodeName(name: string): string {
  return encodeAll(name).replaceAll('%5B', '[').replaceAll('%5D', ']');
}

function joined(
  value: unknown,
  delimiter: string,
  explode: boolean,
  encoded: (text: string) => string,
): string {
  if (!isCompound(value)) return encoded(textOf(value));
  if (!isObject(value)) return value.map((item) => encoded(textOf(item))).join(delimiter);
  const between = explode ? '=' : delimiter;
  return members(value)
    .map(([name, one]) => `${encoded(name)}${between}${encoded(textOf(one))}`)
    .join(delimiter);
}

function members(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, one]) => one !== undefined && one !== null);
}

function isCompound(value: unknown): value is unknown[] | Json {
  return typeof value === 'object' && value !== null;
}

/** A value as text; what no style can write is JSON. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return isCompound(value) ? JSON.stringify(value) : String(value ?? '');
}

/** Everything but letters, digits and `-._~`. */
export function encodeAll(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Reserved characters stay, but for those that would end the value. */
function encodeQuery(text: string): string {
  return encodeURI(text.toWellFormed()).replace(/[#&+]/g, encodeURIComponent);
}
