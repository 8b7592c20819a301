/**
 * The way out of the catalog's network skills. They run in an executor, whose environment has
 * SKILLS_ALLOW_CIDRS as the operator set it.
 */

import { parseAllowList } from './allow-list.ts';
import { type Egress, openEgress } from './guarded-fetch.ts';

const variable = 'SKILLS_ALLOW_CIDRS';

let opened: { readonly list: string; readonly egress: Egress } | undefined;

/**
 * The process's way out, opened at the first call. Throws an Error that names SKILLS_ALLOW_CIDRS
 * when that is not a list of address ranges.
 */
export function skillsEgress(): Egress {
  const list = process.env[variable] ?? '';
  if (opened?.list !== list) opened = { list, egress: openFor(list) };
  return opened.egress;
}

function openFor(list: string): Egress {
  try {
    return openEgress({ allowed: parseAllowList(list), schemes: ['https:', 'http:'] });
  } catch (cause) {
    throw new Error(`${variable}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
