/**
 * Fetches a web page as Markdown for an agent. The executor fetches the page through the guarded client. A
 * sandboxed process parses it, because parsing a hostile page can take very long.
 */

import { defineSkill, SkillError } from '../../definition.ts';
import { cleanText, cut, oneLine } from '../_support/clean-text.ts';
import { decodeText, looksLikeText, mediaType } from '../_support/decode-text.ts';
import { assertAvailable, fetchOutside, header } from '../_support/fetching.ts';
import { depthOf, type HtmlDocument, markdownOf, readHtml } from '../_support/html.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import { integer, objectWith, type Static, urlWith } from '../_support/schemas.ts';

export interface PageOrder {
  readonly html: string;
  readonly url: string;
  readonly maxLinks: number;
  readonly charactersMax: number;
}

const pageBytesMax = 5 * 1024 * 1024;
const reading = {
  module: import.meta.url,
  function: 'readPage',
  timeoutMs: 20_000,
  memoryMb: 192,
};
/** Readability's time grows with the cube of the depth; real pages stay far below this. */
const depthMax = 200;
const elementsMax = 100_000;
const linkTextMax = 200;
const linkUrlMax = 2_048;

const htmlTypes: ReadonlySet<string> = new Set(['text/html', 'application/xhtml+xml']);
const proseTypes: ReadonlySet<string> = new Set(['text/plain', 'text/markdown', 'text/x-markdown']);

const parameters = objectWith(['url'], {
  url: urlWith('Absolute http or https url of the page.'),
  timeout_ms: integer(
    { minimum: 100, maximum: 30_000, default: 15_000 },
    'Milliseconds that fetching may take, redirects included.',
  ),
  max_characters: integer(
    { minimum: 100, maximum: 250_000, default: 100_000 },
    'Characters of Markdown to return; the rest is cut off.',
  ),
  max_links: integer(
    { minimum: 0, maximum: 200, default: 100 },
    'Links to return, in the order of the page.',
  ),
});
const output = objectWith(
  ['url', 'status', 'content_type', 'title', 'markdown', 'links', 'truncated'],
  {
    url: { type: 'string', description: 'Url that answered, after redirects.' },
    status: { type: 'integer', description: 'HTTP status; 4xx pages are returned too.' },
    content_type: { type: 'string', description: 'Media type, such as text/html.' },
    title: { type: 'string', description: 'Title of the page; empty when it has none.' },
    byline: { type: 'string', description: 'Author, where the page names one.' },
    description: { type: 'string', description: "The page's own summary." },
    site_name: { type: 'string', description: 'Name of the site.' },
    language: { type: 'string', description: 'Language tag, such as en or de-AT.' },
    published_at: { type: 'string', description: 'Publication time as the page gives it.' },
    markdown: { type: 'string', description: 'Main text as Markdown.' },
    links: {
      type: 'array',
      description: 'Distinct http and https links of the whole page.',
      items: objectWith('all', {
        text: { type: 'string', description: 'Text of the link; may be empty.' },
        url: { type: 'string', description: 'Absolute url.' },
      }),
    },
    truncated: { type: 'boolean', description: 'Whether page or Markdown were cut off.' },
  },
);
type Output = Static<typeof output>;

export default defineSkill({
  category: 'web',
  name: 'fetch-page',
  version: 'v1.0',
  displayName: 'Fetch page',
  description:
    'Fetches a web page and returns what a reader would see of it: title, author, main text as ' +
    'Markdown, and links. Other text (plain text, JSON, XML) is returned as it is. Follows up to ' +
    'five redirects; reaches public addresses only, unless the operator allows others.',
  parameters,
  output,
  examples: [{ input: { url: 'https://example.com/' } }],

  async run(input, ctx) {
    const response = await fetchOutside(input.url, {
      headers: { accept: 'text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5' },
      signal: ctx.signal,
      timeoutMs: input.timeout_ms ?? 15_000,
      maxBytes: pageBytesMax,
      overflow: 'truncate',
      redirects: 5,
    });
    assertAvailable(response);
    const contentType = header(response, 'content-type');
    const type = mediaType(contentType) || sniffedType(response.body);
    const text = decodeText(textual(type, response.body), contentType);
    const charactersMax = input.max_characters ?? 100_000;
    const order: PageOrder = {
      html: text,
      url: response.url,
      maxLinks: input.max_links ?? 100,
      charactersMax,
    };
    const { truncated, ...content } = htmlTypes.has(type)
      ? await inSandbox<Reading>({ ...reading, input: order, signal: ctx.signal })
      : { title: '', ...fitted(asMarkdown(type, text), charactersMax), links: [] };
    return {
      url: response.url,
      status: response.status,
      content_type: type,
      ...content,
      truncated: response.truncated || truncated,
    };
  },
});

/** A page's content, and whether its Markdown is longer than requested. */
type Reading = Omit<Output, 'url' | 'status' | 'content_type'>;

/** Parses a page. Runs in the sandbox. */
export async function readPage(order: PageOrder): Promise<Reading> {
  const { html, url, maxLinks, charactersMax } = order;
  const { Readability } = await import('@mozilla/readability');
  const document = await readHtml(html);
  makeUrlsAbsolute(document, url);
  // Readability changes the document, so everything else is read first.
  const links = linksOf(document, maxLinks);
  const whole = document.body.innerHTML;
  const facts = factsOf(document);
  const readable = depthOf(document) <= depthMax;
  const article = readable
    ? new Readability(document, { maxElemsToParse: elementsMax }).parse()
    : null;
  const markdown = await markdownOf(article?.content || whole);
  return {
    title: oneLine(article?.title) || facts.title,
    ...optional('byline', oneLine(article?.byline) || facts.byline),
    ...optional('description', facts.description || oneLine(article?.excerpt)),
    ...optional('site_name', oneLine(article?.siteName)),
    ...optional('language', facts.language),
    ...optional('published_at', oneLine(article?.publishedTime)),
    ...fitted(cleanText(markdown), charactersMax),
    links,
  };
}

/** Makes the urls of links and images absolute, and removes those without a valid url. */
function makeUrlsAbsolute(document: HtmlDocument, pageUrl: string): void {
  const base = document.querySelector('base[href]')?.getAttribute('href') ?? '';
  const from = URL.canParse(base, pageUrl) ? new URL(base, pageUrl) : new URL(pageUrl);
  for (const [selector, attribute] of [
    ['a[href]', 'href'],
    ['img[src]', 'src'],
  ] as const) {
    for (const element of document.querySelectorAll(selector)) {
      const written = element.getAttribute(attribute) ?? '';
      const url = URL.canParse(written, from) ? new URL(written, from) : null;
      if (url !== null && /^(https?|mailto):$/.test(url.protocol)) {
        element.setAttribute(attribute, url.href);
      } else element.removeAttribute(attribute);
    }
  }
}

function linksOf(document: HtmlDocument, maxLinks: number): Output['links'] {
  const links = new Map<string, Output['links'][number]>();
  for (const element of document.querySelectorAll('a[href]')) {
    if (links.size >= maxLinks) break;
    const url = element.getAttribute('href') ?? '';
    if (!url.startsWith('http') || url.length > linkUrlMax || links.has(url)) continue;
    links.set(url, { text: cut(oneLine(element.textContent), linkTextMax), url });
  }
  return [...links.values()];
}

function factsOf(document: HtmlDocument) {
  const meta = (...names: string[]) =>
    names
      .map((name) => document.querySelector(`meta[name="${name}"],meta[property="${name}"]`))
      .map((element) => oneLine(element?.getAttribute('content')))
      .find((content) => content !== '') ?? '';
  return {
    title: oneLine(document.title) || meta('og:title'),
    byline: meta('author', 'article:author'),
    description: meta('description', 'og:description'),
    language: oneLine(document.documentElement.getAttribute('lang')),
  };
}

/** The bytes, unless they are no text. */
function textual(type: string, bytes: Uint8Array): Uint8Array {
  if (isTextType(type) || looksLikeText(bytes)) return bytes;
  throw new SkillError(
    `This is ${type}, not a page; documents/extract-text reads PDF and DOCX files`,
    { retryable: false },
  );
}

function isTextType(type: string): boolean {
  return type.startsWith('text/') || /^application\/((.+\+)?(json|xml)|javascript)$/.test(type);
}

function sniffedType(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, 512)).toString('latin1');
  if (/^(\xef\xbb\xbf)?\s*<(!doctype html|html|head|body|!--)/i.test(start)) return 'text/html';
  return looksLikeText(bytes) ? 'text/plain' : 'application/octet-stream';
}

/** Keeps prose unchanged; puts data into a code block with a fence longer than any inside. */
function asMarkdown(type: string, text: string): string {
  if (proseTypes.has(type)) return text;
  let longest = 2;
  for (const [ticks] of text.matchAll(/`+/g)) longest = Math.max(longest, ticks.length);
  const fence = '`'.repeat(longest + 1);
  const language = /json|xml|csv|yaml|javascript|css/.exec(type)?.[0] ?? '';
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`;
}

function fitted(markdown: string, charactersMax: number) {
  const kept = cut(markdown, charactersMax);
  return { markdown: kept, truncated: kept.length < markdown.length };
}

function optional<Name extends string>(name: Name, value: string) {
  return (value === '' ? {} : { [name]: value }) as { readonly [N in Name]?: string };
}
