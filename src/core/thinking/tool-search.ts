/**
 * Search for tools: a model with many tools is shown some and finds the others by a query. Ranks tools with the
 * search of memories. The dialogue records what was found, so repeated attempts and later runs offer it again.
 */
import { setImmediate } from 'node:timers/promises';
import type { DialogueMessage } from '../../adapters/models/model.ts';
import { queryOf } from '../memories/query.ts';
import { findAmong, type Ranked } from '../memories/relevance.ts';
import { columnsOfWords } from '../memories/terms.ts';
import { readWords } from '../memories/words.ts';
import { isFindTool } from './own-tools.ts';

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

/** The tools that a query finds, best first. */
export async function searchTools<T extends Findable>(
  tools: readonly T[],
  query: string,
  limit: number,
): Promise<T[]> {
  let indexed = 0;
  for (const tool of tools) {
    if (ranked.has(tool.source)) continue;
    rankedTool(tool);
    indexed += 1;
    if (indexed % indexedAtOnce === 0) await setImmediate();
  }
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const asked = queryOf(spaced(query.slice(0, queryMax)));
  return findAmong(tools.map(rankedTool), asked)
    .slice(0, limit)
    .flatMap(({ id }) => byName.get(id) ?? []);
}

function rankedTool({ name, description, fields, source }: Findable): Ranked {
  const known = ranked.get(source);
  if (known !== undefined) return known;
  // The name counts twice, because it says what a tool does in the fewest words.
  const text = [name, name, description, fields.join(' ')].join('\n').slice(0, searchedMax);
  const made = { id: name, ...columnsOfWords(readWords(spaced(text)), '') };
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
