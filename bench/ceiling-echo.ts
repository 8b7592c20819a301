/** What both bare ceilings take and answer: `POST /api/util/v1.0/echo` as the product has it. */
import { randomUUIDv7 } from 'node:crypto';
import type { FastifyInstance } from 'fastify';

/** A job as a ceiling records it. */
export interface Job {
  readonly id: string;
  readonly conversationId: string;
  readonly input: string;
  readonly createdAt: number;
  /** Called when it has completed; of a request that waits for that. */
  readonly onCompleted?: () => void;
}

const body = {
  type: 'object',
  required: ['text'],
  additionalProperties: false,
  properties: { text: { type: 'string' } },
};

/** Answers 202 once `record` says that the job is recorded, and 200 to `Prefer: wait` once it has completed. */
export function takeEchoes(server: FastifyInstance, record: (job: Job) => Promise<void>): void {
  server.post('/api/util/v1.0/echo', { schema: { body } }, async (request, reply) => {
    const completed =
      request.headers.prefer === undefined ? undefined : Promise.withResolvers<void>();
    const job: Job = {
      id: randomUUIDv7(),
      conversationId: randomUUIDv7(),
      input: JSON.stringify(request.body),
      createdAt: Date.now(),
      ...(completed && { onCompleted: completed.resolve }),
    };
    await record(job);
    await completed?.promise;
    reply.code(completed === undefined ? 202 : 200);
    return {
      job_id: job.id,
      status: completed === undefined ? 'queued' : 'completed',
      conversation_id: job.conversationId,
      created_at: new Date(job.createdAt).toISOString(),
    };
  });
}

/** Tells how many jobs have completed, in the product's words. */
export function tellCompleted(server: FastifyInstance, completed: () => number): void {
  server.get(
    '/metrics',
    () => `service_completed_jobs_total{queue="skill-execution"} ${completed()}\n`,
  );
}
