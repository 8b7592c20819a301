/**
 * The faults of a built site: addresses that lead to no file or no heading, pages that its menu does not name, and
 * what a page would load from another host. The generator itself checks no headings.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const host = 'http://site';
/** What a browser loads by itself. */
const loaded = /<(?:script|img|link|iframe|source|video)\b[^>]*?\s(?:src|href)="([^"]*)"/g;
const linked = /<a\b[^>]*?\shref="([^"]*)"/g;
const inlineScript = /<script\b(?![^>]*\ssrc=)/;
const importOfStyle = /@import\b|url\(\s*['"]?(?:https?:)?\/\//;

/** `base` is the path of the site; `others` are paths of the platform beside it. */
export function faultsOfSite(folder: string, base: string, others: readonly string[]): string[] {
  const pages = globSync('**/*.html', { cwd: folder }).sort();
  const texts = new Map(pages.map((page) => [page, readFileSync(join(folder, page), 'utf8')]));
  const ids = new Map([...texts].map(([page, text]) => [page, idsOf(text)]));
  const known: Known = { folder, base, others, ids };
  return [
    ...[...texts].flatMap(([page, text]) =>
      [...new Set(faultsOfPage(known, page, text))].map((fault) => `${page}: ${fault}`),
    ),
    ...unlisted(known, texts.get('index.html') ?? '').map((page) => `${page}: not in the menu`),
    ...globSync('**/*.css', { cwd: folder })
      .filter((name) => importOfStyle.test(readFileSync(join(folder, name), 'utf8')))
      .map((name) => `${name}: loads from elsewhere`),
  ];
}

interface Known {
  readonly folder: string;
  readonly base: string;
  readonly others: readonly string[];
  readonly ids: ReadonlyMap<string, ReadonlySet<string>>;
}

function faultsOfPage(known: Known, page: string, text: string): string[] {
  const address = new URL(known.base + addressOf(page), host);
  const loads = [...text.matchAll(loaded)].map(([, target = '']) => target);
  const links = [...text.matchAll(linked)].map(([, target = '']) => target);
  return [
    ...(inlineScript.test(text) ? ['has an inline script'] : []),
    ...loads.filter((target) => new URL(target, address).origin !== host),
    ...[...loads, ...links].filter((target) => !leadsSomewhere(known, new URL(target, address))),
  ];
}

function leadsSomewhere(known: Known, { origin, pathname, hash }: URL): boolean {
  if (origin !== host || known.others.includes(pathname)) return true;
  if (!pathname.startsWith(known.base)) return false;
  const name = decodeURI(pathname.slice(known.base.length));
  if (/\.\w+$/.test(name)) return existsSync(join(known.folder, name));
  const ids = known.ids.get(pageOf(name));
  return ids !== undefined && (hash === '' || ids.has(decodeURIComponent(hash.slice(1))));
}

function unlisted({ base, ids }: Known, index: string): string[] {
  const links = [...index.matchAll(linked)].map(([, target = '']) => target);
  const listed = new Set(links.map((target) => target.slice(base.length)));
  return [...ids.keys()].filter((page) => page !== '404.html' && !listed.has(addressOf(page)));
}

const pageOf = (address: string) =>
  address === '' || address.endsWith('/') ? `${address}index.html` : `${address}.html`;
const addressOf = (page: string) => page.replace(/(?:(?<=^|\/)index)?\.html$/, '');

function idsOf(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/\sid="([^"]*)"/g)].map(([, id = '']) => id));
}
