/**
 * Decides which urls may be requested, without using the network. It does not check the addresses of a
 * name: guarded-agent.ts does so when it connects. It always checks the parsed url, because 0x7f.1,
 * ①②⑦.0.0.1 and 127.0.0.1 are one host.
 */

import { isIP } from 'node:net';
import { isAllowedAddress, isListedAddress } from './address-guard.ts';
import type { AllowList } from './allow-list.ts';
import type { EgressCode } from './egress-error.ts';

const urlLengthMax = 2048;

/** The rules for one kind of caller. */
export interface UrlRules {
  /** `['https:']` for webhooks, `['https:', 'http:']` for skills. */
  readonly schemes: readonly ('http:' | 'https:')[];
  readonly allowed: AllowList;
  /** A fragment is never sent, so in a stored url it is a mistake. */
  readonly fragment: 'ignored' | 'refused';
}

export type UrlCheck =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly code: EgressCode; readonly reason: string };

/** Names of this machine and its local network, as a whole name or as its end. */
const localNames = ['localhost', 'local', 'internal'];

/** The first port that needs no privileges. */
const firstFreePort = 1024;

/** Unprivileged ports of databases, brokers and control planes. */
const refusedPorts: ReadonlySet<number> = new Set([
  1433, 1434, 1521, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3306, 3389, 4369, 5432, 5433, 5671,
  5672, 5900, 5984, 5985, 5986, 6000, 6379, 6380, 6443, 6667, 7000, 7473, 7474, 7687, 8086, 8500,
  8529, 9042, 9092, 9160, 9200, 9300, 10250, 10255, 11211, 15672, 16379, 25672, 26257, 26379, 27017,
  27018, 27019, 28015, 33060, 50000, 61616,
]);

/**
 * Checks `text` as an absolute url. The reason of a refusal is the end of a sentence that starts with
 * "The url".
 */
export function checkUrl(text: string, rules: UrlRules): UrlCheck {
  const invalid = (reason: string) => refused('invalid_url', reason);
  if (text.length > urlLengthMax) return invalid(`is longer than ${urlLengthMax} characters`);
  // The parser drops tabs and line ends and reads \ as /, so the url may mean something else than it looks.
  if (hasMisleadingCharacters(text)) {
    return invalid('contains a space, a control character or a backslash');
  }
  // The parser also skips extra slashes, so a text that looks like a path could become the host.
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(text) || !URL.canParse(text)) {
    return invalid('is not an absolute url');
  }
  const url = new URL(text);
  if (!rules.schemes.some((scheme) => scheme === url.protocol)) {
    return invalid(`must start with ${rules.schemes.map((scheme) => `${scheme}//`).join(' or ')}`);
  }
  if (url.username !== '' || url.password !== '') return invalid('must not contain credentials');
  if (rules.fragment === 'refused' && url.href.includes('#')) {
    return invalid('must not contain a fragment');
  }
  return checkHost(url, rules.allowed) ?? { ok: true, url };
}

/** The port of a url, explicit or by its scheme. */
function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** Whether the port allows a connection to this address. */
export function isAllowedPort(port: number, address: string, allowed: AllowList): boolean {
  return isWebPort(port) || (port > 0 && isListedAddress(address, allowed));
}

function refused(code: EgressCode, reason: string): UrlCheck {
  return { ok: false, code, reason };
}

/** Checks host and port; null when both are allowed. */
function checkHost(url: URL, allowed: AllowList): UrlCheck | null {
  const host = hostOf(url);
  const port = portOf(url);
  const blockedPort = refused('blocked_port', `leads to port ${port}, which is not allowed`);
  if (isIP(host) !== 0) {
    if (isAllowedAddress(host, allowed)) {
      return isAllowedPort(port, host, allowed) ? null : blockedPort;
    }
    return refused('blocked_address', 'leads to an address that is not allowed');
  }
  if (!isHostName(host)) return refused('invalid_url', 'has no valid host');
  // With an operator's list, the addresses of the name decide, and they are checked at the connection.
  // Ports below 1024 are refused in any case, because no webhook or website uses them.
  if (allowed.length > 0) return isWebPort(port) || port >= firstFreePort ? null : blockedPort;
  if (isLocalName(host)) return refused('blocked_address', 'leads to a local name');
  return isWebPort(port) ? null : blockedPort;
}

/** The host as a resolver sees it: no brackets around IPv6, no dot at the end. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

/** Checks the length limits of DNS, so that an impossible name is an invalid url and not a DNS error. */
function isHostName(host: string): boolean {
  return (
    host.length <= 253 && host.split('.').every((label) => label.length >= 1 && label.length <= 63)
  );
}

function isLocalName(host: string): boolean {
  return localNames.some((name) => host === name || host.endsWith(`.${name}`));
}

function isWebPort(port: number): boolean {
  return port === 443 || port === 80 || (port >= firstFreePort && !refusedPorts.has(port));
}

function hasMisleadingCharacters(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u0020\u007f-\u009f\\]|\s/u.test(text);
}
