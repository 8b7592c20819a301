/** `/api/users/:userId/data`: what is kept of a user, to be taken out and to be erased. */
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { ConcurrencyLimit, takeSlots } from '../../adapters/http/concurrency-limit.ts';
import { allowLongAnswer } from '../../adapters/http/connections.ts';
import { apiRefusals } from '../../adapters/http/refusals.ts';
import { Defaulted, Id, Name, Nullable, Words } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { requireScopes } from '../../kernel/caller.ts';
import { exportUser } from './export.ts';
import type { UserData } from './user-data.ts';

/** The scope of keys that may take out and erase what is kept of users. */
const userDataScopes: readonly string[] = ['user-data'];
/** Exports at a time: with the downloads (core/files) fewer than the connections to S3-compatible storage. */
const exportsPerOrganization = 2;
const exportsMax = 8;

const operation = { tags: ['User data'], security: [{ apiKey: [] }] };
const params = Type.Object({
  userId: { ...Name(), description: 'The user, as x-user-id names it.' },
});

const Line = Type.Object(
  {
    type: Type.String({
      description:
        'memory, profile, file, file-part, file-lost, conversation, message, job or end.',
    }),
  },
  {
    additionalProperties: true,
    title: 'UserDataLine',
    examples: [{ type: 'memory', content: 'Ada prefers short answers.', user_id: 'ada' }],
  },
);
const exportSchema = {
  ...operation,
  operationId: 'exportUserData',
  summary: 'Take out all that is kept of a user',
  description:
    'Needs the scope user-data. Lines of JSON: memories, profiles, files with their bytes as base64 in parts, conversations with their messages, and jobs ' +
    'with input and output. After the parts of a file of which the storage has not all bytes there is a line file-lost. The last line is of the type end and counts the others.',
  params,
  response: {
    200: {
      description: 'The lines, as they are read. The schema is that of one of them.',
      content: { 'application/x-ndjson': { schema: Line } },
    },
    ...apiRefusals('insufficient_scope', 'validation_error'),
  },
};
const Erased = Type.Object(
  {
    done: Type.Boolean({ description: 'False where the request has to be repeated to go on.' }),
    open_jobs: Type.Integer({ description: 'Jobs of the user that have not ended.' }),
    waits_for: Nullable({
      ...Id,
      description:
        'A job in a conversation of the user that has not ended, whose data are left: repeat the request after its end.',
    }),
    waits_for_log: Type.Boolean({
      description:
        "Whether all is erased but in the database's log, which a backup or another transaction holds: repeat the request later.",
    }),
    memories: Type.Integer({ description: 'Memories and profiles.' }),
    files: Type.Integer(),
    conversations: Type.Integer(),
    jobs: Type.Integer({ description: 'Jobs whose input, output and record were erased.' }),
  },
  {
    title: 'ErasedUserData',
    description: 'What this request has erased.',
    examples: [
      {
        done: true,
        open_jobs: 0,
        waits_for: null,
        waits_for_log: false,
        memories: 12,
        files: 1,
        conversations: 3,
        jobs: 9,
      },
    ],
  },
);
const eraseSchema = {
  ...operation,
  operationId: 'eraseUserData',
  summary: 'Erase all that is kept of a user',
  description:
    'Needs the scope user-data. Deletes memories, profiles, files, conversations and messages, and all text of jobs; ' +
    'the rows of the jobs stay. Works for 20 seconds at most: where done is false, send it again, one request ' +
    'after the other. ' +
    '409 conflict while a job of the user has not ended, unless cancel_jobs is true: then such jobs are ' +
    'cancelled, and what follows waits for their ends. Nothing was erased before all have ended. ' +
    'upstream_unavailable: bytes of files are left, because their storage fails: send it again.',
  params,
  querystring: Type.Object({
    cancel_jobs: Defaulted({
      ...Words(['true', 'false']),
      default: 'false',
      description: 'true: cancels the jobs of the user that have not ended.',
    }),
  }),
  response: {
    200: Erased,
    ...apiRefusals('insufficient_scope', 'validation_error', 'conflict', 'upstream_unavailable'),
  },
};

export function userDataRoutes(server: Server, userData: UserData): void {
  const path = '/api/users/:userId/data';
  const onRequest = async (request: FastifyRequest) => {
    requireScopes(callerOf(request).scopes, userDataScopes);
  };
  const userOf = (request: FastifyRequest) => {
    const { userId } = request.params as { userId: string };
    return { organizationId: callerOf(request).organizationId, userId };
  };
  const ofOrganizations = new ConcurrencyLimit(
    exportsPerOrganization,
    'exports of one organization',
  );
  const ofAll = new ConcurrencyLimit(exportsMax, 'exports');
  server.get(path, { onRequest, schema: exportSchema }, async (request, reply) => {
    takeSlots(reply, [
      [ofOrganizations, callerOf(request).organizationId],
      [ofAll, ''],
    ]);
    const lines = Readable.from(exportUser(userData, userOf(request)));
    allowLongAnswer(reply.raw);
    // A stream is sent as it is, past the schema of one line.
    return reply.type('application/x-ndjson; charset=utf-8').send(lines as never) as never;
  });
  server.delete(path, { onRequest, schema: eraseSchema }, (request) =>
    userData.erase(userOf(request), request.query.cancel_jobs === 'true'),
  );
}
