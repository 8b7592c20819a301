/**
 * Keeps the long parts of a server's messages from the SDK, which validates each item by several schemas and writes the
 * faults of all into one error: a megabyte of empty blocks took it 23 seconds and a gigabyte. They are set aside in the
 * `_meta` of the message, where nothing looks at them, and put back into what the SDK returns. The caller of
 * the SDK validates them then, in linear time.
 */
import { hasMoreNodes, isObject, type Json } from '../../../kernel/json.ts';

/** Members and items of a message, without what is set aside or has any form. */
const nodesMax = 2_000;
/** The member of `_meta`. */
const place = 'skillwright';

const lists = ['content', 'contents', 'tools'];
/** Parts of any form, which the SDK passes on as they are, and `_meta`, which is counted by itself. */
const free = new Set(['data', 'inputRequests', '_meta']);
const emptyForm = { type: 'object', properties: {} };

/** Sets aside the long parts of a message in place; why the message is refused, or null. */
export function setAside(message: unknown): string | null {
  if (!isObject(message)) return null;
  const { result, params, error, ...head } = message;
  const rest: unknown[] = [head];
  for (const holder of [result, params, error].filter(isObject)) {
    const { [place]: _, ...meta } = isObject(holder['_meta']) ? holder['_meta'] : {};
    const aside = takeFrom(holder);
    rest.push(meta, withoutFree(holder));
    holder['_meta'] = { ...meta, [place]: aside };
  }
  return hasMoreNodes(rest, nodesMax) ? `sent a message with more than ${nodesMax} members` : null;
}

function withoutFree(holder: Json): Json {
  return Object.fromEntries(Object.entries(holder).filter(([name]) => !free.has(name)));
}

function takeFrom(holder: Json): Json {
  const aside: Json = {};
  for (const name of lists) {
    if (!Array.isArray(holder[name])) continue;
    aside[name] = holder[name];
    holder[name] = [];
  }
  if ('structuredContent' in holder) {
    aside['structuredContent'] = holder['structuredContent'];
    delete holder['structuredContent'];
  }
  if (isObject(holder['requestedSchema'])) {
    aside['requestedSchema'] = holder['requestedSchema'];
    holder['requestedSchema'] = emptyForm;
  }
  return aside;
}

/** A result or parameters with what was set aside. */
export function putBack<T>(value: T): T {
  if (!isObject(value) || !isObject(value['_meta'])) return value;
  const { [place]: aside, ...meta } = value['_meta'];
  return isObject(aside) ? { ...value, ...aside, _meta: meta } : value;
}
