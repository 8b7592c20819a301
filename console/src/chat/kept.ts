/**
 * Keeps drafts in the tab's session storage, so that they survive a reload and accidental navigation. Signing out
 * deletes them.
 */
import { useState } from 'react';
import { pageOrganization } from '../api/organization.ts';

const prefix = 'kept ';

/** Stores a draft. One that is too long for the storage is lost at a reload. */
function keep(key: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    sessionStorage.removeItem(key);
  }
}

function kept<T>(key: string): T | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/** As `useState`, for a part of a page that has `name` for as long as it is shown; undefined is not kept. */
export function useKept<T>(name: string) {
  const key = `${prefix}${pageOrganization()} ${name}`;
  const [value, setValue] = useState(() => kept<T>(key));
  function set(next: T | undefined) {
    keep(key, next);
    setValue(next);
  }
  return [value, set] as const;
}

export function forgetKept(): void {
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(prefix)) sessionStorage.removeItem(key);
  }
}
