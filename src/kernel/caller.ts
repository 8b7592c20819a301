import { PlatformError } from './errors.ts';

/** The author of a request: an API key with its rights. */
export interface Caller {
  readonly keyId: string;
  readonly organizationId: string;
  readonly clientName: string;
  /** Skill categories, or `*` alone for all. */
  readonly scopes: readonly string[];
  /** Requests in any minute. */
  readonly rateLimit: number;
}

/** `*` alone opens everything; any other scope opens the category of its name. */
export function hasScopes(scopes: readonly string[], required: readonly string[]): boolean {
  return scopes[0] === '*' || required.every((scope) => scopes.includes(scope));
}

/** Throws `403 insufficient_scope` unless `scopes` hold all of `required`. */
export function requireScopes(scopes: readonly string[], required: readonly string[]): void {
  if (hasScopes(scopes, required)) return;
  const missing = required.filter((scope) => !scopes.includes(scope));
  throw new PlatformError('insufficient_scope', `This key lacks the scope ${missing.join(', ')}`);
}

/**
 * The scopes that are no categories: what a key may do beside running skills, now and in later versions. No skill may
 * have such a category (docs/decisions/api-keys.md).
 */
export const reservedScopes = [
  'agents',
  'approvals',
  'audit',
  'budgets',
  'conversations',
  'events',
  'files',
  'keys',
  'memories',
  'operate',
  'registry',
  'schedules',
  'triggers',
  'user-data',
  'webhooks',
] as const;
