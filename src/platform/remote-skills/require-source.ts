/** What the routes of all kinds of remote sources share. */
import { lookUp } from '../../adapters/http/look-up.ts';
import type { Sources } from './source-verbs.ts';

/** A hook: an unknown source is 404 before any other check (docs/decisions/order-of-checks.md). */
export function requireSource(sources: Sources<object>) {
  return lookUp('name', (name) => sources.rowOf(name));
}
