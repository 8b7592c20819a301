/**
 * The scopes of the areas that the specification opens to every valid key. With `API_KEY_PERMISSIONS=strict` each needs
 * the scope of its name (docs/decisions/api-keys.md). They depend on the path alone, so they are checked before the
 * resource is looked up, and a key learns nothing of resources that it may not read.
 */
import type { FastifyRequest, RouteOptions } from 'fastify';
import { requireScopes } from '../../kernel/caller.ts';
import { callerOf } from './authenticate.ts';
import type { Server } from './server.ts';

/** The first match counts. */
const areas: readonly { readonly path: string; readonly scopes: readonly string[] }[] = [
  {
    // Names the scheduled jobs of a skill.
    path: '/api/skills/:category/:version/:skillName/usages',
    scopes: ['registry', 'schedules'],
  },
  { path: '/api/skills', scopes: ['registry'] },
  { path: '/api/agents/:agentId/memories', scopes: ['memories'] },
  { path: '/api/agents/:agentId/profiles', scopes: ['memories'] },
  { path: '/api/conversations', scopes: ['conversations'] },
  { path: '/api/files', scopes: ['files'] },
  { path: '/api/scheduled-jobs', scopes: ['schedules'] },
  { path: '/api/agent-webhooks', scopes: ['webhooks'] },
  { path: '/api/jobs/:jobId/steps/:step/prompt', scopes: ['conversations', 'memories'] },
  { path: '/api/jobs/:jobId/deliveries', scopes: ['webhooks'] },
];

/** Describes the scopes of the routes that are registered from now on, and requires them where `isStrict`. */
export function applyStrictScopes(server: Server, isStrict: boolean): void {
  server.addHook('onRoute', (route) => {
    const scopes = areas.find(({ path }) => isBelow(route.url, path))?.scopes;
    if (scopes === undefined) return;
    describe(route, scopes);
    if (!isStrict) return;
    const admit = async (request: FastifyRequest) =>
      requireScopes(callerOf(request).scopes, scopes);
    route.onRequest = [admit, ...[route.onRequest ?? []].flat()];
  });
}

const isBelow = (url: string, path: string) => url === path || url.startsWith(`${path}/`);

function describe(route: RouteOptions, scopes: readonly string[]): void {
  if (route.schema === undefined) return;
  const text = `With API_KEY_PERMISSIONS=strict the key needs the scope ${scopes.join(' and ')}.`;
  const { description } = route.schema;
  route.schema = {
    ...route.schema,
    description: description === undefined ? text : `${description} ${text}`,
  };
}
