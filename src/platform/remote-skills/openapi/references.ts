/** References inside a document. One that leads out of it is refused, so that no document makes the platform ask others. */
import { isObject, type Json } from '../../../kernel/json.ts';
import { DocumentError } from './operation.ts';

/** References that lead to references. */
const stepsMax = 32;

/** What a reference names. */
export function targetOf(document: Json, reference: unknown): unknown {
  const shown = JSON.stringify(reference)?.slice(0, 200);
  if (typeof reference !== 'string') throw new DocumentError(`The reference ${shown} is no text`);
  if (!reference.startsWith('#')) {
    throw new DocumentError(
      `The reference ${shown} leads out of the document: bundle it into one file first`,
    );
  }
  const nowhere = new DocumentError(`The reference ${shown} leads nowhere`);
  if (reference !== '#' && !reference.startsWith('#/')) throw nowhere;
  let found: unknown = document;
  for (const step of reference.split('/').slice(1)) {
    const name = unescaped(step);
    const isThere = typeof found === 'object' && found !== null && Object.hasOwn(found, name);
    if (!isThere) throw nowhere;
    found = (found as Json)[name];
  }
  return found;
}

/** The value itself, or what its references lead to at last. Members beside a reference win over those of its target. */
export function resolve(document: Json, value: unknown): unknown {
  let resolved = value;
  for (let steps = 0; isObject(resolved) && '$ref' in resolved; steps++) {
    const { $ref, ...beside } = resolved;
    if (steps === stepsMax) {
      const shown = JSON.stringify($ref)?.slice(0, 200);
      throw new DocumentError(`The reference ${shown} leads to more than ${stepsMax} others`);
    }
    const target = targetOf(document, $ref);
    resolved = isObject(target) ? { ...target, ...beside } : target;
  }
  return resolved;
}

/** Like `resolve`; null where the target is no object. */
export function resolveObject(document: Json, value: unknown): Json | null {
  const resolved = resolve(document, value);
  return isObject(resolved) ? resolved : null;
}

function unescaped(step: string): string {
  let text = step;
  try {
    text = decodeURIComponent(step);
  } catch {
    // A percent sign that encodes nothing stands for itself.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}
