/** `GET /api/agent-webhooks/listen`: the events of an organization, for a receiver without a public address. */
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { eventStream, LastEventId, sendEvents } from '../../adapters/http/event-stream.ts';
import { apiRefusals } from '../../adapters/http/refusals.ts';
import { FilterText } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { StreamAdmission } from '../../adapters/http/streams.ts';
import { invalid } from '../../kernel/errors.ts';
import { allAgents, isId } from '../../kernel/ids.ts';
import { ListenerEventSchema, typesOf } from './listen.schemas.ts';
import type { ListenerEvent, ListenerPosition, Listeners } from './listen.ts';

const schema = {
  tags: ['Webhooks'],
  security: [{ apiKey: [] }],
  operationId: 'listenForWebhookEvents',
  summary: 'Follow what webhooks would deliver as server-sent events',
  description:
    "The organization's events from now on, for a receiver that the platform cannot reach: no webhook is needed, and " +
    'none is changed. The client signs each body with a secret of its own. A client that reconnects with Last-Event-ID ' +
    'within a minute resumes after that event, at any process. The stream ends after an hour; a client resumes it. ' +
    '409 if the organization has 10 sessions, 503 if the key or the address has too many open streams.',
  querystring: Type.Object({
    agent_id: Type.Optional(FilterText('Events of this agent alone; all without it, and with *.')),
    events: Type.Optional(
      Type.String({
        maxLength: 1_000,
        description:
          'Types of events, comma-separated; without it all that the key may read. Those of approvals need the scope ' +
          'approvals.',
      }),
    ),
  }),
  headers: LastEventId,
  response: {
    200: eventStream(ListenerEventSchema, 'The events, for an hour at most.'),
    ...apiRefusals('validation_error', 'insufficient_scope', 'conflict'),
  },
};

/** `isStrict`: whether keys need the scopes of `API_KEY_PERMISSIONS=strict`. */
export function listenRoutes(
  server: Server,
  listeners: Listeners,
  streams: StreamAdmission,
  isStrict: boolean,
) {
  // A HEAD would hold the stream open for nothing.
  const options = { exposeHeadRoute: false, schema };
  server.get('/api/agent-webhooks/listen', options, async (request, reply) => {
    const { organizationId, keyId: apiKeyId, scopes } = callerOf(request);
    const { agent_id: agent, events } = request.query;
    const agentId = agent === allAgents ? undefined : agent;
    const types = typesOf(events, scopes, isStrict);
    const after = positionOf(request.headers['last-event-id']);
    const signal = streams.begin(request, reply);
    const listening = { organizationId, apiKeyId, agentId, types, after };
    await sendEvents(reply, asServerSent(await listeners.listen(listening, signal)));
  });
}

async function* asServerSent(events: AsyncIterable<ListenerEvent>) {
  for await (const { position, event, data } of events) {
    const { listenerId, txid, seq } = position;
    yield { id: `${listenerId}.${txid}.${seq}`, event, data };
  }
}

function positionOf(id: string | undefined): ListenerPosition | null {
  if (id === undefined || id === '') return null;
  const [listenerId = '', txid = '', seq = '', ...rest] = id.split('.');
  const isPosition = isId(listenerId) && /^\d{1,19}$/.test(txid) && /^\d{1,15}$/.test(seq);
  if (!isPosition || rest.length > 0) {
    throw invalid('last-event-id', 'must be the id of an event of this stream');
  }
  return { listenerId, txid, seq: Number(seq) };
}
