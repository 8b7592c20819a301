/** What files look like on the wire. */
import { Type } from 'typebox';
import { OnceGiven } from '../../adapters/http/idempotency-key.ts';
import { apiRefusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import {
  FilterText,
  Id,
  Name,
  Nothing,
  Nullable,
  Page,
  Paged,
  Timestamp,
} from '../../adapters/http/schemas.ts';

/** Days that a client may have a file kept: a year, and some for the next use. */
const retentionDaysMax = 400;
const operation = { tags: ['Files'], security: [{ apiKey: [] }] };

const File = Type.Object(
  {
    id: Id,
    name: Type.String(),
    media_type: Type.String({ description: 'Judged by the bytes, not by what the client says.' }),
    bytes: Type.Integer(),
    sha256: Type.String({ description: 'The digest of the bytes, in hex.' }),
    user_id: Nullable(
      Type.String({ description: "Whose it is; null for the organization's own." }),
    ),
    job_id: Nullable({ ...Id, description: 'The job whose run made it; null where a client did.' }),
    retention_days: Nullable(
      Type.Integer({ description: 'Its own days of retention; null for FILE_RETENTION_DAYS.' }),
    ),
    created_at: Timestamp,
    expires_at: { ...Timestamp, description: 'When it is deleted, unless it is used before.' },
  },
  {
    title: 'File',
    description: 'The file.',
    examples: [
      {
        id: '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2c',
        name: 'harbour.png',
        media_type: 'image/png',
        bytes: 48_213,
        sha256: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
        user_id: 'ada',
        job_id: null,
        retention_days: null,
        created_at: '2026-01-01T00:00:00.000Z',
        expires_at: '2026-01-31T00:00:00.000Z',
      },
    ],
  },
);

/** A file as outputs, events and messages name it. */
export const NamedFile = Type.Object({
  type: Type.Literal('file'),
  id: Id,
  name: Type.String(),
  media_type: Type.String(),
  bytes: Type.Integer(),
  sha256: Type.String(),
});
const Bytes = Type.Unsafe<unknown>({ type: 'string', format: 'binary' });
const params = Type.Object({ id: { ...Id, description: 'The id of the file.' } });

export const uploadSchema = {
  ...operation,
  operationId: 'uploadFile',
  summary: 'Keep a file',
  description:
    'A multipart form with one file, or the bytes themselves as body, of any media type. ' +
    '409 conflict where the organization has as many files or bytes as it may have, or where the platform keeps no files. ' +
    'upstream_unavailable: the storage of files cannot be reached.',
  headers: Type.Object({
    'x-user-id': OnceGiven(
      'The user whose file it is: only tasks for the same user may use it. Without it, tasks for any user.',
      { maxLength: 200 },
    ),
  }),
  querystring: Type.Object({
    name: Type.Optional({
      ...Name(),
      description: 'Its name; that of the form when it is left out, else file.',
    }),
    retention_days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: retentionDaysMax,
        description:
          'Days that it is kept after it was given or used last, instead of FILE_RETENTION_DAYS.',
      }),
    ),
  }),
  body: {
    content: {
      'multipart/form-data': {
        schema: Type.Object(
          { file: Bytes },
          { title: 'FileForm', examples: [{ file: 'The bytes of the file.' }] },
        ),
      },
      'application/octet-stream': {
        schema: { ...Bytes, examples: ['The bytes of the file.'] },
      },
    },
  },
  response: {
    201: { ...File, ...carries('Location') },
    ...apiRefusals(
      'conflict',
      'payload_too_large',
      'unsupported_media_type',
      'upstream_unavailable',
    ),
  },
};
const FilePage = Type.Object(
  {
    ...Paged(File, '').properties,
    bytes: Type.Integer({ description: 'Bytes of all files of the organization together.' }),
  },
  {
    description: 'A page of files.',
    examples: [{ data: [], total: 0, bytes: 0, limit: 50, offset: 0 }],
  },
);
export const listSchema = {
  ...operation,
  operationId: 'listFiles',
  summary: 'List files, newest first',
  querystring: Type.Object({
    user_id: Type.Optional(FilterText("Files of this user; empty for the organization's own.")),
    job_id: Type.Optional(FilterText('Files that runs of this job have made.')),
    ...Page.properties,
  }),
  response: { 200: FilePage, ...apiRefusals() },
};
export const getSchema = {
  ...operation,
  operationId: 'getFile',
  summary: 'Get a file without its bytes',
  params,
  response: { 200: File, ...apiRefusals('not_found') },
};
const content = {
  content: {
    'application/octet-stream': { schema: { ...Bytes, examples: ['The bytes of the file.'] } },
  },
};
export const contentSchema = {
  ...operation,
  operationId: 'getFileContent',
  summary: 'Get the bytes of a file',
  description:
    'PNG, JPEG, GIF and WebP pictures, sound and video have their own media type. Every other file is an attachment, text as text/plain, and no browser runs what is in it. A single range of bytes (`Range`, `If-Range`) is answered with 206.',
  params,
  response: {
    200: { description: 'The bytes.', ...carries('ETag'), ...content },
    206: { description: 'The part of the bytes that Range names.', ...carries('ETag'), ...content },
    304: Type.Null({ description: 'If-None-Match names these bytes.' }),
    416: Type.Null({ description: 'The file has no bytes in this range.' }),
    ...apiRefusals('not_found', 'conflict', 'upstream_unavailable'),
  },
};
export const deleteSchema = {
  ...operation,
  operationId: 'deleteFile',
  summary: 'Delete a file with its bytes',
  params,
  response: { 204: Nothing, ...apiRefusals('not_found') },
};
