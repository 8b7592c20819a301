/** `GET /api/queue` and `GET /admin/queue`: what waits, and why. */
import { callerOf } from '../../adapters/http/authenticate.ts';
import { adminRefusals, apiRefusals } from '../../adapters/http/refusals.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { QueueState } from './queue-state.ts';
import { OwnQueue, WholeQueue } from './queues.schemas.ts';

const tags = ['Queue'];
const reads =
  'However many jobs wait, it reads a bounded number of kept counts and of jobs, most of these in indexes alone: for a key some ten thousand, of all organizations some hundred thousand at most.';

/** Below `/api`. */
export function queueRoutes(server: Server, state: QueueState) {
  const schema = {
    tags,
    security: [{ apiKey: [] }],
    operationId: 'getQueue',
    summary: 'Get what waits in your organization, and why',
    description: `By queue, skill and agent: waiting, running and later jobs, the oldest one, and what holds them. ${reads}`,
    response: { 200: OwnQueue, ...apiRefusals() },
  };
  server.get('/api/queue', { schema }, (request) => state.ofOrganization(callerOf(request)));
}

/** Below `/admin`. */
export function queueAdminRoutes(server: Server, state: QueueState) {
  const schema = {
    tags,
    security: [{ adminBearer: [] }, { adminHeader: [] }],
    operationId: 'getQueueOfAll',
    summary: 'Get what waits in all organizations, and why',
    description: `By queue, organization, skill and agent, with the slots of the workers. ${reads}`,
    response: { 200: WholeQueue, ...adminRefusals() },
  };
  server.get('/admin/queue', { schema }, () => state.ofAll());
}
