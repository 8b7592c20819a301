/**
 * The organization of this page, from its address. It never changes while the page is loaded: switching the
 * organization loads another page, so that no data, input or cache of one organization is shown or sent in
 * another.
 */

import { returnedTo } from './returned.ts';

const base = '/console';
const named = /^\/console\/o\/([a-z0-9][a-z0-9-]*)(?=\/|$)/;
const rememberedAs = 'organization';

let current = named.exec(location.pathname)?.[1] ?? returnedTo();

/** Null until `arrive` has completed an address without an organization. */
export const pageOrganization = (): string | null => current;

/** The address of an organization's page; `place` is for example `/jobs`. */
export const addressOf = (organization: string, place = '/'): string =>
  `${base}/o/${organization}${place}`;

/** The list that this page belongs to, such as `/jobs` for the page of a job; every organization has it. */
export const section = (): string => /^\/[\w-]*/.exec(placeOf(location.pathname))?.[0] ?? '/';

const placeOf = (path: string) => path.slice(named.exec(path)?.[0].length ?? base.length);

/**
 * Completes an address without an organization with the last one of this browser, and remembers the
 * present one.
 */
export function arrive(organizations: readonly string[]): void {
  if (current === null) {
    const last = localStorage.getItem(rememberedAs);
    const [first = 'default'] = organizations;
    current = organizations.find((id) => id === last) ?? first;
  }
  if (!named.test(location.pathname)) {
    const { pathname, search, hash } = location;
    history.replaceState(history.state, '', addressOf(current, placeOf(pathname)) + search + hash);
  }
  if (organizations.includes(current)) localStorage.setItem(rememberedAs, current);
}
