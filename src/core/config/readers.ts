/** How the text of an environment variable is read. */
import { readFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { parseAllowList } from '../../adapters/egress/allow-list.ts';
import type { OperatorAbilities } from '../../adapters/models/known-models.ts';
import { readOperatorAbilities } from '../../adapters/models/operator-abilities.ts';
import { readOperatorPrices } from '../../adapters/models/operator-prices.ts';
import type { ModelPrice } from '../../adapters/models/prices.ts';
import { embeddingsFault, partsOfModel, providerPattern } from '../../adapters/models/providers.ts';
import { adminSecretRule, isAdminSecret } from './admin-secret.ts';

/** The value, or the end of a sentence: what was expected. */
export type Reader<T> = (text: string) => { value: T } | { expected: string };

export const integer =
  (min: number, max: number): Reader<number> =>
  (text) =>
    /^\d{1,12}$/.test(text) && Number(text) >= min && Number(text) <= max
      ? { value: Number(text) }
      : { expected: `an integer from ${min} to ${max}` };

export const text: Reader<string> = (value) =>
  value.trim() === '' ? { expected: 'a value that is not empty' } : { value };

export const url =
  (...protocols: string[]): Reader<string> =>
  (value) =>
    protocols.some((protocol) => value.startsWith(`${protocol}://`)) && URL.canParse(value)
      ? { value }
      : { expected: `a url that begins with ${protocols.map((p) => `${p}://`).join(' or ')}` };

/** An address under which paths are appended: it may have a path of its own, and nothing behind that. */
export const publicUrl: Reader<string> = (value) => {
  const parsed = URL.parse(value);
  const isPlain =
    /^https?:\/\/[^/\\\s?#@]+(?:\/[^\s?#]*)?$/i.test(value) &&
    parsed !== null &&
    value.length <= 2_048;
  return isPlain
    ? { value: parsed.href.replace(/\/$/, '') }
    : { expected: 'an http or https url without credentials, query and fragment' };
};

/** Origins as browsers send them; `*` alone for all. */
export const originList: Reader<ReadonlySet<string>> = (value) => {
  const given = value.split(',').map((one) => one.trim());
  const isOrigin = (one: string) => /^https?:/.test(one) && URL.parse(one)?.origin === one;
  return value.trim() === '*' || (given.length <= 100 && given.every(isOrigin))
    ? { value: new Set(given) }
    : { expected: 'origins such as https://app.example.com, comma-separated, or * for all' };
};

/** Names of hosts, without ports. */
export const hostList: Reader<ReadonlySet<string>> = (value) => {
  const given = value.split(',').map((one) => one.trim().toLowerCase());
  const isHost = (one: string) => URL.parse(`http://${one}`)?.host === one;
  return given.length <= 100 && given.every(isHost)
    ? { value: new Set(given) }
    : { expected: 'host names such as platform.example.com, comma-separated' };
};

export const word =
  <W extends string>(...words: W[]): Reader<W> =>
  (value) =>
    words.includes(value as W) ? { value: value as W } : { expected: `one of ${words.join(', ')}` };

export const adminSecret: Reader<string> = (value) =>
  isAdminSecret(value) ? { value } : { expected: adminSecretRule };

/** Judged here, kept as text: the executors that use it read it from their environment. */
export const addressRanges: Reader<string> = (value) => {
  if (value.trim() === '') return { expected: 'address ranges such as 10.0.0.0/8, fd00::/8' };
  try {
    parseAllowList(value);
    return { value };
  } catch (error) {
    return { expected: `address ranges, but ${(error as Error).message}` };
  }
};

/** Addresses and ranges of proxies, as a list that addresses are checked against. */
export const trustedProxies: Reader<BlockList> = (value) => {
  const expected = 'addresses or ranges such as 10.0.0.5, 172.16.0.0/12, fd00::/8, comma-separated';
  try {
    const ranges = parseAllowList(value);
    if (ranges.length === 0) return { expected };
    // Every client could then write the address that it is counted by.
    if (ranges.some(([, prefix]) => prefix === 0)) {
      return { expected: `${expected}, but not every address: name the proxies` };
    }
    const proxies = new BlockList();
    for (const [network, prefix] of ranges) {
      proxies.addSubnet(network.toString(), prefix, network.kind());
    }
    return { value: proxies };
  } catch (error) {
    return { expected: `${expected}, but ${(error as Error).message}` };
  }
};

export const model: Reader<string> = (value) =>
  new RegExp(`^${providerPattern}/\\S+$`).test(value) && value.length <= 200
    ? { value }
    : { expected: 'provider/model, such as openai/gpt-5' };

/** A model that makes vectors: not of a provider that has none. */
export const embeddingModel: Reader<string> = (value) => {
  const read = model(value);
  const fault = 'value' in read ? embeddingsFault(partsOfModel(value).provider) : '';
  if (fault === null) return read;
  const but = fault === '' ? '' : `, but ${fault}`;
  return { expected: `provider/model, such as openai/text-embedding-3-small${but}` };
};

/** A JSON list of prices, or the path of a file with one. */
export const modelPrices: Reader<readonly ModelPrice[]> = (value) => {
  const list = listIn(value);
  if ('fault' in list)
    return { expected: `a JSON list of prices or a file with one, but ${list.fault}` };
  const read = readOperatorPrices(list.json);
  return 'prices' in read
    ? { value: read.prices }
    : { expected: `prices of models, but ${read.fault}` };
};

/** A JSON list of models with their abilities, or the path of a file with one. */
export const modelAbilities: Reader<readonly OperatorAbilities[]> = (value) => {
  const list = listIn(value);
  if ('fault' in list)
    return { expected: `a JSON list of models or a file with one, but ${list.fault}` };
  const read = readOperatorAbilities(list.json);
  return 'models' in read
    ? { value: read.models }
    : { expected: `abilities of models, but ${read.fault}` };
};

function listIn(value: string): { readonly json: string } | { readonly fault: string } {
  if (value.trimStart().startsWith('[')) return { json: value };
  try {
    return { json: readFileSync(value.trim(), 'utf8') };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

/** What a process does (design: Out of one machine). */
export const roles = ['api', 'worker', 'scheduler'] as const;
export type Role = (typeof roles)[number];

export const roleList: Reader<ReadonlySet<Role>> = (value) => {
  const given = value === 'all' ? roles : value.split(',').map((one) => one.trim());
  return given.every((one) => (roles as readonly string[]).includes(one))
    ? { value: new Set(given as readonly Role[]) }
    : { expected: `all, or some of ${roles.join(', ')}, comma-separated` };
};

/** Seconds, comma-separated; as milliseconds. */
export const delays: Reader<readonly number[]> = (value) => {
  const seconds = value.split(',').map((one) => one.trim());
  const isValid = seconds.length <= 20 && seconds.every((one) => /^\d{1,6}(\.\d{1,3})?$/.test(one));
  return isValid
    ? { value: seconds.map((one) => Math.round(Number(one) * 1000)) }
    : { expected: 'up to 20 numbers of seconds such as 30,120' };
};
