/**
 * Search for tools: a model with many tools is shown some and finds the others by a query. Ranks tools with the
 * search of memories, by words and, where that is given, by meaning. The dialogue records what was found, so repeated attempts and later runs offer it again.
 */
import { setImmediate } from 'node:timers/promises';
import type { DialogueMessage } from '../../adapters/models/model.ts';
import { fused } from '../memories/fusion.ts';
import { queryOf } from '../memories/query.ts';
import { findAmong, type Ranked } from '../memories/relevance.ts';
import { columnsOfWords } from '../memories/terms.ts';
import { readWords } from '../memories/words.ts';
import { isFindTool } from './own-tools.ts';
import type { Described } from './tool-meaning.ts';

/** Characters of a tool's description and fields that are searched. */
const searchedMax = 600;
/** Tools that are indexed in one turn of the event loop: each takes up to half a millisecond. */
const indexedAtOnce = 20;
/** Characters of a query, and of a description in an answer. */
const queryMax = 1_000;
const describedMax = 300;

/** A tool that can be searched for. */
export interface Findable {
  readonly name: string;
  readonly description: string;
  /** The names of its arguments. */
  readonly fields: readonly string[];
  /** The same object as long as the tool does not change; key of the cache. */
  readonly source: object;
}

/** Cache of search entries, by `source`; filled at the first search. */
const ranked = new WeakMap<object, Ranked>();

/** The names of the tools nearest to a query, nearest first. */
export type NearestTools = (tools: readonly Described[], query: string) => Promise<string[]>;

/** The tools that a query finds, best first. */
export async function searchTools<T extends Findable>(
  tools: readonly T[],
  query: string,
  limit: number,
  nearest: NearestTools | null,
): Promise<T[]> {
  let indexed = 0;
  for (const tool of tools) {
    if (ranked.has(tool.source)) continue;
    rankedTool(tool);
    indexed += 1;
    if (indexed % indexedAtOnce === 0) await setImmediate();
  }
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const sought = query.slice(0, queryMax);
  const asked = queryOf(spaced(sought));
  const byWords = findAmong(tools.map(rankedTool), asked).map(({ id }) => id);
  const described = () => tools.map((tool) => ({ name: tool.name, text: textOf(tool) }));
  const near = nearest === null ? [] : await nearest(described(), sought);
  const found = near.length === 0 ? byWords : fused(byWords, near);
  return found.slice(0, limit).flatMap((name) => byName.get(name) ?? []);
}

/** What is searched of a tool. */
function textOf({ name, description, fields }: Findable): string {
  const text = [name, description, fields.join(' ')].join('\n').slice(0, searchedMax);
  return spaced(text.toWellFormed());
}

function rankedTool(tool: Findable): Ranked {
  const { name, source } = tool;
  const known = ranked.get(source);
  if (known !== undefined) return known;
  // The name counts twice, because it says what a tool does in the fewest words.
  const text = `${spaced(name)}\n${textOf(tool)}`;
  const made = { id: name, ...columnsOfWords(readWords(text), '') };
  ranked.set(source, made);
  return made;
}

/** Splits a name such as `createIssue` or `fetch_page` into words. */
function spaced(text: string): string {
  return text.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2').replaceAll('_', ' ');
}

/** What the model reads of the tools that were found. */
export function foundTools(tools: readonly Findable[]) {
  return {
    tools: tools.map(({ name, description }) => ({
      name,
      description: description.slice(0, describedMax).toWellFormed(),
    })),
  };
}

/** The names of the tools that the dialogue has found or called, in the order in which it first did. */
export function toolsIn(messages: readonly DialogueMessage[]): Set<string> {
  const names = new Set<string>();
  for (const message of messages) {
    if (message.role === 'assistant') for (const { name } of message.toolCalls) names.add(name);
    if (message.role !== 'tool' || message.isError || !isFindTool(message.name)) continue;
    for (const name of namesIn(message.text)) names.add(name);
  }
  return names;
}

function namesIn(text: string): string[] {
  try {
    const { tools } = JSON.parse(text) as ReturnType<typeof foundTools>;
    return tools.flatMap((tool) => (typeof tool?.name === 'string' ? tool.name : []));
  } catch {
    return [];
  }
}
