/** `/api/agent-triggers` (docs/decisions/triggers.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { apiRefusals, workRefusals } from '../../adapters/http/refusals.ts';
import { carries, setNextOffset } from '../../adapters/http/response-headers.ts';
import { IncludedRefusal, Nothing, Page, Paged } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import { invalid } from '../../kernel/errors.ts';
import { refuseLong } from '../../kernel/long-text.ts';
import { secretFault } from '../../kernel/webhook-signature.ts';
import type { TriggerCalls } from './calls.ts';
import {
  CreatedTrigger,
  mappingMax,
  NewTrigger,
  Trigger,
  TriggerCall,
  TriggerChanges,
} from './triggers.schemas.ts';
import type { Triggers } from './triggers.ts';

const operation = { tags: ['Triggers'], security: [{ apiKey: [] }] };
const collection = '/api/agent-triggers';
const one = `${collection}/:triggerId` as const;
const params = Type.Object({ triggerId: Type.String({ description: 'The id of the trigger.' }) });

/** `publicUrl` is the address of the platform for clients; null where it is unknown. */
export function triggerRoutes(
  server: Server,
  triggers: Triggers,
  calls: TriggerCalls,
  publicUrl: string | null,
) {
  createRoute(server, triggers, publicUrl);
  listRoute(server, triggers);
  getRoute(server, triggers);
  updateRoute(server, triggers);
  listCallsRoute(server, triggers, calls);
  removeRoute(server, triggers);
}

const idOf = (request: FastifyRequest) => (request.params as { triggerId: string }).triggerId;

/** Unknown triggers are 404 before their body is checked (docs/decisions/order-of-checks.md). */
const requireTrigger = (triggers: Triggers) =>
  lookUp('triggerId', (id, { organizationId }) => triggers.find(organizationId, id));

function createRoute(server: Server, triggers: Triggers, publicUrl: string | null) {
  const schema = {
    ...operation,
    operationId: 'createAgentTrigger',
    summary: 'Create a trigger',
    description:
      'Creates an address that external systems call to start runs of a skill. Every ' +
      'client that knows its token can call it, so keep it secret like a key. Its ' +
      'runs use the key that created it, or last changed what it runs. Without a skill, the agent handles ' +
      'each event by its own instructions. The key needs the scopes of the skill, or events with event. With event, calls become events for runs that wait.',
    body: NewTrigger,
    response: {
      201: { ...CreatedTrigger, ...carries('Location') },
      ...apiRefusals(...workRefusals, 'conflict'),
    },
  };
  server.post(collection, { schema }, async (request, reply) => {
    const created = await triggers.create(callerOf(request), checked(request.body));
    return reply
      .status(201)
      .header('location', `${collection}/${created.id}`)
      .send({ ...created, url: addressOf(request, created.token, publicUrl) });
  });
}

function listRoute(server: Server, triggers: Triggers) {
  const schema = {
    ...operation,
    operationId: 'listAgentTriggers',
    summary: 'List triggers, newest first',
    querystring: Type.Object({ include: IncludedRefusal, ...Page.properties }),
    response: {
      200: { ...Paged(Trigger, 'A page of triggers.'), ...carries('X-Next-Offset') },
      ...apiRefusals(),
    },
  };
  server.get(collection, { schema }, async (request, reply) => {
    const { include, ...page } = request.query;
    const { organizationId } = callerOf(request);
    const { next, ...found } = await triggers.list(organizationId, page, include);
    setNextOffset(reply, next);
    return { ...found, ...page };
  });
}

function getRoute(server: Server, triggers: Triggers) {
  const schema = {
    ...operation,
    operationId: 'getAgentTrigger',
    summary: 'Get a trigger',
    params,
    querystring: Type.Object({ include: IncludedRefusal }),
    response: { 200: Trigger, ...apiRefusals('not_found') },
  };
  const errorHandler = unknownFirst(requireTrigger(triggers));
  server.get(one, { errorHandler, schema }, (request) => {
    const { organizationId } = callerOf(request);
    return triggers.get(organizationId, request.params.triggerId, request.query.include);
  });
}

function updateRoute(server: Server, triggers: Triggers) {
  /** A skill that the key may not run is 403 before the body is checked. */
  const admitChange = (request: FastifyRequest) =>
    triggers.admitChange(callerOf(request), idOf(request));
  const schema = {
    ...operation,
    operationId: 'updateAgentTrigger',
    summary: 'Change, deactivate or reactivate a trigger',
    description:
      'Changes the given fields; input is replaced as a whole. The token stays. The ' +
      'key needs the scopes of the skill before and after the change; with an event, the scope events. Where ' +
      'agent, skill, input, mapping or event change, calls use this key from then on.',
    params,
    body: TriggerChanges,
    response: {
      200: Trigger,
      ...apiRefusals(...workRefusals),
    },
  };
  server.put(one, { onRequest: admitChange, schema }, (request) =>
    triggers.update(callerOf(request), request.params.triggerId, checked(request.body)),
  );
}

function listCallsRoute(server: Server, triggers: Triggers, calls: TriggerCalls) {
  const schema = {
    ...operation,
    operationId: 'listAgentTriggerCalls',
    summary: 'List the last calls of a trigger, newest first',
    description:
      'Accepted and refused calls, at most 200 and none older than 7 days. A call is ' +
      'listed about a second after its response.',
    params,
    querystring: Page,
    response: { 200: Paged(TriggerCall, 'A page of calls.'), ...apiRefusals('not_found') },
  };
  const options = { onRequest: requireTrigger(triggers), schema };
  server.get(`${one}/calls`, options, async (request) => {
    const { params, query: page } = request;
    return { ...(await calls.list(params.triggerId, page)), ...page };
  });
}

function removeRoute(server: Server, triggers: Triggers) {
  const schema = {
    ...operation,
    operationId: 'deleteAgentTrigger',
    summary: 'Delete a trigger',
    params,
    response: { 204: Nothing, ...apiRefusals('not_found') },
  };
  server.delete(one, { onRequest: requireTrigger(triggers), schema }, async (request, reply) => {
    await triggers.remove(callerOf(request).organizationId, request.params.triggerId);
    return reply.status(204).send(null);
  });
}

/** Checks the rules that a JSON Schema cannot express. */
function checked<T extends TriggerChanges>(body: T): T {
  refuseLong('mapping', body.mapping ?? '', mappingMax);
  refuseLong('event.key_mapping', body.event?.key_mapping ?? '', mappingMax);
  refuseLong('input', JSON.stringify(body.input ?? {}));
  const fault = secretFault(body.signing_secret ?? '');
  if (fault !== null) throw invalid('signing_secret', fault);
  return body;
}

/**
 * The address of a trigger: below PUBLIC_URL, else at the host of the request. Only the path when the
 * request names no usable host.
 */
function addressOf(request: FastifyRequest, token: string, publicUrl: string | null): string {
  const path = `/api/webhooks/agent/${token}`;
  if (publicUrl !== null) return publicUrl + path;
  const host = request.headers.host?.toLowerCase();
  const url = URL.parse(`http://${host}${path}`);
  // A client may send any text as Host; some texts would change the path or the host of the url.
  return host !== undefined && url?.host === host && url.pathname === path ? url.href : path;
}
