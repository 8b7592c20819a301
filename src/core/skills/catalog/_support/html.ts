/**
 * Parses HTML and converts it to text and Markdown. Runs in a sandboxed process (in-sandbox.ts): parsing
 * takes linear time, but the later steps may not on a hostile document.
 *
 * linkedom parses and turndown writes the Markdown. The lines of plain text and the rows of tables are ours:
 * linkedom's `textContent` has no lines, and turndown has no tables.
 */

/** The used part of the DOM; this project does not include TypeScript's DOM library. */
export interface HtmlNode {
  readonly nodeType: number;
  readonly nodeValue: string | null;
  readonly childNodes: Iterable<HtmlNode>;
}

export interface HtmlElement extends HtmlNode {
  readonly localName: string;
  readonly textContent: string;
  readonly innerHTML: string;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  querySelector(selector: string): HtmlElement | null;
  querySelectorAll(selector: string): Iterable<HtmlElement>;
}

export interface HtmlDocument extends HtmlElement {
  readonly body: HtmlElement;
  readonly documentElement: HtmlElement;
  readonly title: string;
}

const elementNode = 1;
const textNode = 3;

/** Elements that a page does not display. */
const invisible: ReadonlySet<string> = new Set([
  'canvas',
  'head',
  'iframe',
  'noscript',
  'object',
  'script',
  'style',
  'svg',
  'template',
]);

/** Elements that stand on lines of their own, by the number of line ends around them. */
const lineEnds: Readonly<Record<string, 1 | 2>> = {
  ...all(1, 'address dd div dt figcaption footer form header legend li main nav option tr'),
  ...all(2, 'article aside blockquote dl fieldset figure h1 h2 h3 h4 h5 h6 hr ol p pre'),
  ...all(2, 'section table ul'),
};

/**
 * Parses HTML, valid or not, into a document with one head and one body. linkedom keeps elements where
 * they are written, so without this a page that omits `<body>` would have an empty one.
 */
export async function readHtml(html: string): Promise<HtmlDocument> {
  const { parseHTML } = await import('linkedom');
  const empty = '<!doctype html><html><head></head><body></body></html>';
  const { document } = parseHTML(empty);
  const { body, head, documentElement } = document;
  body.innerHTML = html.replace(/^\uFEFF/, '').replace(/<!doctype[^<>]*>/gi, '');
  for (const shell of body.querySelectorAll('html, head, body')) {
    const language = shell.getAttribute('lang');
    if (language !== null) documentElement.setAttribute('lang', language);
    shell.replaceWith(...shell.childNodes);
  }
  for (const element of body.querySelectorAll('title, meta, base, link')) {
    if (element.closest('svg') === null) head.append(element);
  }
  return document as unknown as HtmlDocument;
}

/** How deep the elements of a document nest. */
export function depthOf(root: HtmlNode): number {
  let depth = 0;
  let level: HtmlNode[] = [root];
  while (level.length > 0) {
    depth += 1;
    level = level.flatMap((node) => [...node.childNodes]);
  }
  return depth;
}

/** The text of a page as it reads: lines where blocks begin, tabs between the cells of a table. */
export function textOf(document: HtmlDocument): string {
  const output: TextOutput = { parts: [], lineEnds: 0 };
  write(document.body, false, output);
  return output.parts
    .join('')
    .replace(/(?<![ \t\u00a0])[ \t\u00a0]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

/** Markdown of an HTML fragment: headings with #, fenced code, tables as tables. */
export async function markdownOf(html: string): Promise<string> {
  const { default: TurndownService } = await import('turndown');
  const service = new TurndownService({
    headingStyle: 'atx',
    codeBlockStyle: 'fenced',
    bulletListMarker: '-',
    hr: '---',
  });
  service.remove(['script', 'style', 'noscript', 'iframe', 'object', 'title']);
  service.remove((node) => invisible.has(node.nodeName.toLowerCase()));
  service.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content) =>
      ` ${content
        .trim()
        .replace(/(?<!\s)\s*\n\s*/g, ' ')
        .replaceAll('|', '\\|')} |`,
  });
  service.addRule('row', {
    filter: 'tr',
    replacement: (content, node) => `\n|${content}${isFirstRow(node) ? rule(content) : ''}`,
  });
  service.addRule('table', {
    filter: 'table',
    replacement: (content) => `\n\n${content.trim().replace(/\n{2,}/g, '\n')}\n\n`,
  });
  return service.turndown(html);
}

/** Collects text; holds line ends back until more text comes. */
interface TextOutput {
  readonly parts: string[];
  lineEnds: number;
}

function write(node: HtmlNode, preformatted: boolean, output: TextOutput): void {
  for (const child of node.childNodes) {
    if (child.nodeType === textNode) {
      const text = child.nodeValue ?? '';
      writeText(preformatted ? text : flowing(text, output), output);
    } else if (child.nodeType === elementNode) {
      writeElement(child as HtmlElement, preformatted, output);
    }
  }
}

function writeElement(element: HtmlElement, preformatted: boolean, output: TextOutput): void {
  const name = element.localName;
  if (invisible.has(name)) return;
  if (name === 'br') writeText('\n', output);
  const around = lineEnds[name] ?? 0;
  output.lineEnds = Math.max(output.lineEnds, around);
  write(element, preformatted || name === 'pre', output);
  if (name === 'td' || name === 'th') writeText('\t', output);
  output.lineEnds = Math.max(output.lineEnds, around);
}

function writeText(text: string, output: TextOutput): void {
  if (text === '') return;
  if (output.lineEnds > 0) output.parts.push('\n'.repeat(output.lineEnds));
  output.lineEnds = 0;
  output.parts.push(text);
}

/** Text with its white space collapsed, also into the space or line end before it. */
function flowing(text: string, { parts, lineEnds: held }: TextOutput): string {
  const collapsed = text.replace(/[\t\n\f\r ]+/g, ' ');
  const afterSpace = held > 0 || /\s$/.test(parts.at(-1) ?? '\n');
  return afterSpace ? collapsed.replace(/^ /, '') : collapsed;
}

function isFirstRow(row: unknown): boolean {
  const { parentNode, previousElementSibling } = row as {
    parentNode: { nodeName: string; previousElementSibling: unknown } | null;
    previousElementSibling: unknown;
  };
  if (previousElementSibling !== null || parentNode === null) return false;
  return parentNode.nodeName === 'TABLE' || parentNode.previousElementSibling === null;
}

/** The line under a table's head, as long as the head has cells. */
function rule(cells: string): string {
  const count = cells.match(/(?<!\\)\|/g)?.length ?? 0;
  return `\n|${' --- |'.repeat(count)}`;
}

function all<Count extends number>(count: Count, names: string): Record<string, Count> {
  return Object.fromEntries(names.split(' ').map((name) => [name, count]));
}
