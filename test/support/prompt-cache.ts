/**
 * The prompt caches of providers, as their public documentation has them: what of a request is read from
 * a cache, and what is written to it. A token is four characters here.
 */
import { createHash } from 'node:crypto';
import type { Body, ReportedUsage } from './scripted-protocols.ts';
import type { ScriptedRequest } from './scripted-provider.ts';

/** The least tokens of a cached prefix. */
const least = 1_024;
/** Blocks before a breakpoint in which Anthropic looks for an earlier entry. */
const lookback = 20;

interface Block {
  /** Identifies this block and everything before it. */
  readonly prefix: string;
  /** Of this block and everything before it. */
  readonly tokens: number;
  readonly isMarked: boolean;
}

type Counted = Omit<ReportedUsage, 'completion'>;

/** Counts as Anthropic does: only up to breakpoints, of which there may be four. */
export function anthropicCache(): (request: ScriptedRequest) => Counted {
  const entries = new Set<string>();
  return ({ body }) => {
    const blocks = blocksOf([
      ...(body.tools ?? []),
      ...asBlocks(body.system),
      ...body.messages.flatMap(({ role, content }: Body) =>
        asBlocks(content).map((block) => ({ role, ...block })),
      ),
    ]);
    const marks = blocks.flatMap(({ isMarked }, i) => (isMarked ? [i] : []));
    if (marks.length > 4) throw new Error(`${marks.length} breakpoints`);
    const found = marks.flatMap((mark) =>
      blocks
        .slice(Math.max(0, mark - lookback), mark + 1)
        .filter(({ prefix }) => entries.has(prefix))
        .map(({ tokens }) => tokens),
    );
    const read = Math.max(0, ...found);
    const cached = marks
      .map((mark) => blocks[mark] as Block)
      .filter(({ tokens }) => tokens >= least);
    for (const { prefix } of cached) entries.add(prefix);
    const written = Math.max(0, (cached.at(-1)?.tokens ?? 0) - read);
    return { prompt: blocks.at(-1)?.tokens ?? 0, cacheRead: read, cacheWrite: written };
  };
}

/** Counts as OpenAI does: the longest prefix of an earlier request, in steps of 128 tokens. */
export function prefixCache(): (request: ScriptedRequest) => Counted {
  const requests: string[] = [];
  return ({ body }) => {
    const text = JSON.stringify([body.tools ?? [], body.messages]);
    const shared = Math.max(0, ...requests.map((earlier) => sharedLength(earlier, text)));
    requests.push(text);
    const tokens = Math.floor(shared / 4 / 128) * 128;
    return { prompt: Math.ceil(text.length / 4), cacheRead: tokens < least ? 0 : tokens };
  };
}

function sharedLength(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i += 1;
  return i;
}

function asBlocks(content: Body): Body[] {
  if (content === undefined) return [];
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** A mark is no part of what is cached. */
function blocksOf(parts: readonly Body[]): Block[] {
  const hash = createHash('sha256');
  let characters = 0;
  return parts.map(({ cache_control: mark, ...part }) => {
    const text = JSON.stringify(part);
    characters += text.length;
    const prefix = hash.update(text).copy().digest('hex');
    return { prefix, tokens: Math.ceil(characters / 4), isMarked: mark?.type === 'ephemeral' };
  });
}
