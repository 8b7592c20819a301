/**
 * What GitHub makes of the pages, made here, too: the same anchors, links to files of the repository, and
 * diagrams. So each page reads well in both places.
 */
import { dirname, join, relative, resolve } from 'node:path';
import { renderMermaidSVG } from 'beautiful-mermaid';
import type { MarkdownRenderer } from 'vitepress';

/** A transition of a state diagram, with what it is called. */
const transition = /^(\s*\S+ --> \S+: )(.*)$/gm;
/** A diagram with such lines is no wider than the text of a page. */
const labelLength = 18;

type Tokens = ReturnType<MarkdownRenderer['parse']>;

const root = join(import.meta.dirname, '../..');
const docs = join(root, 'docs');
/** Files elsewhere in the repository that are shown within a page. */
const shown = new Map([[join(root, 'packages/client/README.md'), '/client.md']]);

export function asOnGitHub(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('repository_links', ({ tokens, env }) => {
    const page = (env.realPath ?? env.path) as string;
    for (const { children } of tokens) if (children) linkPages(children, page);
  });
  markdown.core.ruler.push('literal_code', ({ tokens }) => {
    for (const code of tokens.flatMap(({ children }) => children ?? [])) {
      // The generator would replace braces by values.
      if (code.type === 'code_inline') code.attrSet('v-pre', '');
    }
  });
  markdown.core.ruler.push('contents', (state) => {
    state.tokens = withoutContents(state.tokens);
  });
  const code = markdown.renderer.rules.code_inline;
  markdown.renderer.rules.code_inline = (tokens, index, ...rest) => {
    // Braces would be expressions of a template.
    tokens[index]?.attrSet('v-pre', '');
    return code?.(tokens, index, ...rest) ?? '';
  };
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index];
    if (token?.info.trim() === 'mermaid') return diagram(token.content);
    return fence?.(tokens, index, ...rest) ?? '';
  };
}

/** Links to pages from the root of the site. A file that is no page has nothing to link to: its name stays. */
function linkPages(tokens: Tokens, page: string): void {
  for (const [index, token] of tokens.entries()) {
    const href = token.type === 'link_open' ? hrefOf(token) : null;
    if (href === null || /^(?:[a-z][a-z+.-]*:|[#/])/i.test(href)) continue;
    const [path = '', hash] = href.split('#');
    const file = resolve(dirname(page), decodeURI(path));
    const isShownHere = shown.has(file) && shown.get(file) === pageOf(page);
    const target = isShownHere ? undefined : (shown.get(file) ?? pageOf(file));
    // The generator reports a page that is not there, scripts/check-doc-paths.ts any other file.
    if (target !== undefined) token.attrSet('href', hash ? `${target}#${hash}` : target);
    else nameOnly(tokens, index, relative(root, file));
  }
}

function hrefOf(token: Tokens[number]): string | null {
  const href = token.attrGet('href');
  return href === null ? null : String(href);
}

function pageOf(file: string): string | undefined {
  const name = relative(docs, file);
  if (name.startsWith('..') || !name.endsWith('.md')) return undefined;
  return `/${name.replace(/(?<=^|\/)README\.md$/, 'index.md')}`;
}

function nameOnly(tokens: Tokens, from: number, file: string): void {
  const open = tokens[from];
  const close = tokens.find(({ type }, index) => index > from && type === 'link_close');
  if (!open || !close) return;
  Object.assign(open, { type: 'span_open', tag: 'span' });
  Object.assign(close, { type: 'span_close', tag: 'span' });
  open.attrs = [['title', `${file} in the repository`]];
}

/** Without paragraphs of links within the page: the site has a list of its headings. */
function withoutContents(tokens: Tokens): Tokens {
  const isDropped = (index: number) => {
    const { type, children } = tokens[index] ?? {};
    if (type !== 'inline' || !children?.some((one) => one.type === 'link_open')) return false;
    if (tokens[index - 1]?.type !== 'paragraph_open' || tokens[index - 1]?.level !== 0)
      return false;
    let depth = 0;
    return children.every((one) => {
      if (one.type === 'link_open') depth += 1;
      else if (one.type === 'link_close') depth -= 1;
      const isInside = depth > 0 && (hrefOf(one) ?? '#').startsWith('#');
      return isInside || one.type === 'link_close' || /^[\s·]*$/.test(one.content);
    });
  };
  return tokens.filter((_token, index) => ![index - 1, index, index + 1].some(isDropped));
}

/** Its colours are in the style sheet, so that it is light or dark as the page is. It names no font. */
function diagram(code: string): string {
  const narrow = code.replace(
    transition,
    (_all, edge: string, label: string) => edge + broken(label),
  );
  const svg = renderMermaidSVG(narrow, { transparent: true, padding: 12, nodeSpacing: 12 })
    .replace(/<style>.*?<\/style>/s, '')
    .replace(/(<svg[^>]*?) style="[^"]*"/, '$1');
  return `<div class="diagram" role="group" aria-label="Diagram" tabindex="0" v-pre>${svg}</div>\n`;
}

/** A label in lines. */
function broken(label: string): string {
  const lines: string[] = [];
  for (const word of label.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= labelLength) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.join('<br/>');
}
