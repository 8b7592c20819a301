/** Validates the memory requests of a run by the API's rules. They come from skill code and are untrusted. */

import { PlatformError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { isObject } from '../../kernel/json.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { isCleanText, jsonTextFault } from '../../kernel/text.ts';
import { type MemoryFields, queryCharsMax, tagCharsMax } from './fields.ts';
import { argumentsOf, type MemoryVerb, recallDefault, recallMax, ttlMax } from './memory-verbs.ts';

/** Memories of the run's user or of the agent itself. A run cannot name another user. */
export type Whose = 'user' | 'agent';

/** The message of a conversation that a memory was formed of. */
export interface FormedOf {
  readonly conversation_id: string;
  readonly message_id: string;
}

export interface Recollection {
  readonly whose?: Whose | undefined;
  readonly query?: string | undefined;
  readonly tag?: string | undefined;
  readonly limit: number;
}

/** Throws a permanent error that names the fault: a repeated request would fail too. */
export function readRemember(
  payload: unknown,
  now: number,
): MemoryFields & { content: string; whose?: Whose; source?: FormedOf } {
  const { source, ...others } = isObject(payload) ? payload : { source: undefined };
  const asked = isObject(payload) ? others : payload;
  const { content, tag, metadata, whose, ttl_seconds } = fieldsOf(asked, 'remember');
  if (typeof content !== 'string' || content === '') throw permanentError('content must be a text');
  if (!isCleanText(content)) throw permanentError('content must be well-formed text without NUL');
  return {
    content,
    ...(tag === undefined ? {} : { tag: readTag(tag) }),
    ...(metadata === undefined ? {} : { metadata: readMetadata(metadata) }),
    ...(whose === undefined ? {} : { whose: readWhose(whose) }),
    ...(source === undefined ? {} : { source: readSource(source) }),
    ...(ttl_seconds === undefined ? {} : { expires_at: now + readTtl(ttl_seconds) * 1000 }),
  };
}

export function readRecall(payload: unknown): Recollection {
  const { query, tag, whose, limit = recallDefault } = fieldsOf(payload, 'recall');
  if (!Number.isInteger(limit) || (limit as number) < 1 || (limit as number) > recallMax) {
    throw permanentError(`limit must be an integer from 1 to ${recallMax}`);
  }
  return {
    limit: limit as number,
    query: query === undefined ? undefined : readText('query', query, 0, queryCharsMax),
    tag: tag === undefined ? undefined : readTag(tag),
    whose: whose === undefined ? undefined : readWhose(whose),
  };
}

/** The new profile of the run's user, of at most `maxBytes`. */
export function readProfile(payload: unknown, maxBytes: number): string {
  const { content } = fieldsOf(payload, 'update_profile');
  if (typeof content !== 'string') throw permanentError('content must be a text');
  if (!isCleanText(content)) throw permanentError('content must be well-formed text without NUL');
  const text = content.trim();
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  throw permanentError(
    `the profile has ${bytes} bytes and may have ${maxBytes}: shorten it, and keep the rest as memories`,
  );
}

export function readForget(given: unknown): string {
  const payload = isObject(given) ? given['id'] : given;
  if (typeof payload !== 'string') throw permanentError('the id of a memory is a text');
  return payload;
}

/** A request without its mark that it is asked with the rights of a model; the request itself where it has none. */
export function withoutRights(payload: unknown): unknown {
  if (!isObject(payload) || payload['by_model'] !== true) return payload;
  const { by_model: _, ...others } = payload;
  return others;
}

function readSource(source: unknown): FormedOf {
  const { conversation_id, message_id } = isObject(source) ? source : {};
  if (isIdText(conversation_id) && isIdText(message_id)) return { conversation_id, message_id };
  throw permanentError('source must have the ids conversation_id and message_id');
}

const isIdText = (id: unknown): id is string => typeof id === 'string' && isId(id);

/** Runs `check`; turns a validation error of the API into a permanent error of the run. */
export function refusing<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof PlatformError) throw permanentError(error.message);
    throw error;
  }
}

function fieldsOf(payload: unknown, verb: MemoryVerb): Record<string, unknown> {
  if (!isObject(payload)) throw permanentError('a memory is asked for, or given, as an object');
  const known = argumentsOf(verb);
  const unknown = Object.keys(payload).find((name) => !known.includes(name));
  if (unknown !== undefined) throw permanentError(`${unknown.slice(0, 200)} is not allowed`);
  return payload;
}

function readWhose(whose: unknown): Whose {
  if (whose !== 'user' && whose !== 'agent') throw permanentError('whose must be user or agent');
  return whose;
}

function readTtl(seconds: unknown): number {
  if (!Number.isInteger(seconds) || (seconds as number) < 1 || (seconds as number) > ttlMax) {
    throw permanentError(`ttl_seconds must be an integer from 1 to ${ttlMax}`);
  }
  return seconds as number;
}

const readTag = (tag: unknown) => readText('tag', tag, 1, tagCharsMax);

function readText(name: string, text: unknown, min: number, max: number): string {
  const length = typeof text === 'string' ? characters(text, max) : -1;
  if (length < min || length > max) {
    throw permanentError(`${name} must be a text of ${min} to ${max} characters`);
  }
  if (!isCleanText(text as string)) {
    throw permanentError(`${name} must be well-formed text without NUL`);
  }
  return text as string;
}

/** Counts code points, as the API does, up to one more than `max`. */
function characters(text: string, max: number): number {
  return text.length > 2 * max ? text.length : [...text].length;
}

function readMetadata(metadata: unknown): Record<string, unknown> {
  if (!isObject(metadata)) throw permanentError('metadata must be an object');
  const fault = jsonTextFault(JSON.stringify(metadata));
  if (fault !== null) throw permanentError(`metadata ${fault}`);
  return metadata;
}
