/** `/admin/processes`: the live processes. */
import { Type } from 'typebox';
import { adminRefusals } from '../../adapters/http/refusals.ts';
import { Id, Nullable, Timestamp } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { ThisProcess } from './this-process.ts';

const LiveProcesses = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          id: { ...Id, description: 'New at each start.' },
          roles: Type.Array(Type.String()),
          version: Type.String(),
          skills: Type.Array(Type.String(), {
            description: 'Its loaded skills, as category/version/name.',
          }),
          started_at: Timestamp,
          seen_at: { ...Timestamp, description: 'Its last heartbeat.' },
          last_claim_at: {
            ...Nullable(Timestamp),
            description:
              'When it last took a job from a queue; null before the first. Jobs that it ' +
              'accepted and began itself do not count.',
          },
          last_job_at: {
            ...Nullable(Timestamp),
            description:
              'When it last began a job, from a queue or accepted by itself; null before the ' +
              'first.',
          },
        },
        { title: 'LiveProcess' },
      ),
    ),
    total: Type.Integer(),
  },
  {
    title: 'LiveProcesses',
    description: 'Processes with a heartbeat in the last 15 seconds, the oldest first.',
    examples: [
      {
        data: [
          {
            id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
            roles: ['worker'],
            version: '0.1.0',
            skills: ['util/v1.0/echo'],
            started_at: '2026-01-01T00:00:00.000Z',
            seen_at: '2026-01-01T00:10:03.000Z',
            last_claim_at: '2026-01-01T00:10:02.125Z',
            last_job_at: '2026-01-01T00:10:03.250Z',
          },
        ],
        total: 1,
      },
    ],
  },
);

export function processAdminRoutes(server: Server, processes: ThisProcess) {
  server.get(
    '/admin/processes',
    {
      schema: {
        tags: ['Operations'],
        security: [{ adminBearer: [] }, { adminHeader: [] }],
        operationId: 'listProcesses',
        summary: 'List the live processes',
        description:
          'In a cluster all processes with a heartbeat in the last 15 seconds; otherwise ' +
          'the one process.',
        response: { 200: LiveProcesses, ...adminRefusals() },
      },
    },
    async () => {
      const data = await processes.list();
      return { data, total: data.length };
    },
  );
}
