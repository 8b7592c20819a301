/**
 * Markdown as a tree, from a text that may be hostile. Raw HTML is text, only addresses of the web and of mail
 * are links, and the tree is bounded in nodes and depth. No I/O.
 */
import MarkdownIt, { type Token } from 'markdown-it';

/** Longer texts are shown as they are. */
const charactersMax = 200_000;
/** A text of many marks, such as a table without cells, would make a tree too large to draw. */
const nodesMax = 8_000;
/** Deeper nodes are shown on the level of their parents: browsers give up on deep trees. */
const depthMax = 24;

export interface MarkdownNode {
  readonly token: Token;
  readonly children: readonly MarkdownNode[];
}

interface OpenNode extends MarkdownNode {
  readonly children: OpenNode[];
}

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true, maxNesting: depthMax });
// Only what names its protocol: `file.sh` and `main.rs` are names of files more often than of hosts.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
parser.validateLink = isSafeAddress;

/** Whether a page may lead there. An address without a host would lead into the platform itself. */
export function isSafeAddress(address: string): boolean {
  return /^(?:https?:\/\/[^/\\]|mailto:)/i.test(address.trim());
}

/** The blocks of a text; undefined for one that is to be shown as it is. */
export function parsed(text: string): readonly MarkdownNode[] | undefined {
  if (text.length > charactersMax) return undefined;
  const tokens = parser.parse(text, {});
  let nodes = tokens.length;
  for (const { children } of tokens) nodes += children?.length ?? 0;
  return nodes > nodesMax ? undefined : treeOf(tokens);
}

/** Where the last block of a text begins, in characters. */
export function lastBlockAt(text: string): number {
  const blocks = parser.parse(text, {}).filter(({ level, nesting, map }) => {
    return level === 0 && nesting >= 0 && map !== null;
  });
  return offsetOfLine(text, blocks.at(-1)?.map?.[0] ?? 0);
}

function offsetOfLine(text: string, line: number): number {
  let at = 0;
  for (let i = 0; i < line; i += 1) at = text.indexOf('\n', at) + 1;
  return at;
}

function treeOf(tokens: readonly Token[]): OpenNode[] {
  const roots: OpenNode[] = [];
  const open = [roots];
  for (const token of tokens) {
    const siblings = open.at(-1) ?? roots;
    if (token.nesting < 0) {
      open.pop();
      continue;
    }
    if (token.type === 'inline') {
      siblings.push(...treeOf(token.children ?? []));
      continue;
    }
    const node: OpenNode = { token, children: [] };
    const isTooDeep = token.nesting > 0 && open.length > depthMax;
    if (!isTooDeep) siblings.push(node);
    if (token.nesting > 0) open.push(isTooDeep ? siblings : node.children);
  }
  return roots;
}
