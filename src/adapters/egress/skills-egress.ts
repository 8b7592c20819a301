/**
 * The HTTP client of the catalog's network skills, and of the files that tasks name by urls. Skills run in an executor, whose
 * environment holds the operator's SKILLS_ALLOW_CIDRS.
 */

import { parseAllowList } from './allow-list.ts';
import { Egress } from './guarded-fetch.ts';

const variable = 'SKILLS_ALLOW_CIDRS';

let opened: { readonly list: string; readonly egress: Egress } | undefined;

/**
 * The client of this process, opened at the first call. Throws an Error that names SKILLS_ALLOW_CIDRS
 * when its value is no list of address ranges.
 */
export function skillsEgress(): Egress {
  return egressWith(process.env[variable] ?? '');
}

/** The client of this process with these allowed address ranges, as skills reach the network. Throws like `skillsEgress`. */
export function egressWith(list: string): Egress {
  if (opened?.list !== list) opened = { list, egress: openFor(list) };
  return opened.egress;
}

function openFor(list: string): Egress {
  try {
    return new Egress({ allowed: parseAllowList(list), schemes: ['https:', 'http:'] });
  } catch (cause) {
    throw new Error(`${variable}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
