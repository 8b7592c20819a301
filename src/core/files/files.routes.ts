/** `/api/files`: files of an organization, and their bytes (docs/files.md). */
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import type { TObject } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { ConcurrencyLimit, takeSlots } from '../../adapters/http/concurrency-limit.ts';
import { namesTag, partAsked } from '../../adapters/http/conditional-reads.ts';
import { allowLongAnswer, allowLongBody } from '../../adapters/http/connections.ts';
import { queryReader } from '../../adapters/http/query.ts';
import { leaveBodiesUnread, receiveFile } from '../../adapters/http/receive-file.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import { userOf } from '../../adapters/http/user-id.ts';
import { fileName } from '../../kernel/file-name.ts';
import { isShownInline, servedType } from './content.ts';
import {
  contentSchema,
  deleteSchema,
  getSchema,
  listSchema,
  uploadSchema,
} from './files.schemas.ts';
import { type Files, fileView } from './files.ts';

/** Uploads of one organization, and of all, that a process takes at a time: each may fill the disk with one file. */
const uploadsPerOrganization = 16;
const uploadsMax = 64;
/** Downloads at a time, fewer than the connections to S3-compatible storage: slow ones leave some for all other work. */
const downloadsPerOrganization = 16;
const downloadsMax = 48;
/** What a form has beside its file, at most. */
const formBytesMax = 64 * 1024;

export function fileRoutes(server: Server, files: Files): void {
  server.register((registered, _options, done) => {
    uploadRoute(registered as unknown as Server, files);
    done();
  });
  server.get('/api/files', { schema: listSchema }, async (request) => {
    const { limit, offset, user_id, job_id } = request.query;
    const filters = {
      ...(user_id !== undefined && { user_id: user_id === '' ? null : user_id }),
      ...(job_id !== undefined && { job_id }),
    };
    const page = { limit, offset };
    const { data, ...sums } = await files.list(callerOf(request).organizationId, filters, page);
    return { data: data.map(fileView), ...sums, ...page };
  });
  const find = (request: FastifyRequest) => {
    const { id } = request.params as { id: string };
    return files.find(callerOf(request).organizationId, id);
  };
  const errorHandler = unknownFirst(async (request) => void (await find(request)));
  server.get('/api/files/:id', { errorHandler, schema: getSchema }, async (request) =>
    fileView(await find(request)),
  );
  const ofOrganizations = new ConcurrencyLimit(
    downloadsPerOrganization,
    'downloads of one organization',
  );
  const ofAll = new ConcurrencyLimit(downloadsMax, 'downloads');
  server.get(
    '/api/files/:id/content',
    { errorHandler, schema: contentSchema },
    async (request, reply) => {
      const file = await find(request);
      const etag = `"${file.sha256}"`;
      const shows = isShownInline(file.media_type) ? 'inline' : 'attachment';
      reply.headers({
        'content-type': servedType(file.media_type),
        'content-disposition': `${shows}; filename*=UTF-8''${encodeURIComponent(file.name)}`,
        'content-security-policy': "default-src 'none'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'cache-control': 'private, no-cache',
        'accept-ranges': 'bytes',
        etag,
      });
      const isHead = request.method === 'HEAD';
      const isKnown = namesTag(request.headers['if-none-match'], etag);
      if (isHead || isKnown) {
        await files.prolong(file);
        if (isKnown) reply.status(304);
        else reply.header('content-length', Number(file.bytes));
        return reply.send((isHead ? Readable.from([]) : null) as never) as never;
      }
      const part = partAsked(request.headers, etag, Number(file.bytes));
      if (part === 'none') {
        return reply.status(416).header('content-range', `bytes */${file.bytes}`).send(null);
      }
      takeSlots(reply, [
        [ofOrganizations, file.organization_id],
        [ofAll, ''],
      ]);
      allowLongAnswer(reply.raw);
      const bytes = await files.open(file, part ?? undefined);
      if (part !== null) {
        const { start, end } = part;
        reply.status(206).header('content-range', `bytes ${start}-${end}/${file.bytes}`);
      }
      const length = part === null ? Number(file.bytes) : part.end - part.start + 1;
      return reply.header('content-length', length).send(bytes as never) as never;
    },
  );
  server.delete(
    '/api/files/:id',
    { errorHandler, schema: deleteSchema },
    async (request, reply) => {
      await files.remove(callerOf(request).organizationId, request.params.id);
      return reply.status(204).send(null);
    },
  );
}

function uploadRoute(scope: Server, files: Files): void {
  leaveBodiesUnread(scope);
  const ofOrganizations = new ConcurrencyLimit(
    uploadsPerOrganization,
    'uploads of one organization',
  );
  const ofAll = new ConcurrencyLimit(uploadsMax, 'uploads');
  const options = {
    schema: uploadSchema,
    // The body stays unread.
    validatorCompiler: ({ schema, httpPart }: { schema: unknown; httpPart?: string }) =>
      httpPart === 'querystring' ? queryReader(schema as TObject) : () => true,
  };
  scope.post('/api/files', options, async (request, reply) => {
    const { organizationId } = callerOf(request);
    const userId = userOf(request) ?? null;
    takeSlots(reply, [
      [ofOrganizations, organizationId],
      [ofAll, ''],
    ]);
    allowLongBody(request.raw);
    const { name: given, retention_days: retentionDays } = request.query;
    const owner = { organizationId, userId, jobId: null, retentionDays };
    const length = Number(request.headers['content-length'] ?? 0);
    const file = await receiveFile(request, reply, async ({ name, bytes }) => {
      await files.requireRoom(organizationId, Math.max(0, length - formBytesMax));
      return await files.create(owner, fileName(given ?? name), bytes);
    });
    reply.header('location', `/api/files/${file.id}`);
    return reply.status(201).send(fileView(file));
  });
}
