/** An organization of a test's own, seen through one of its keys. */
import { randomBytes } from 'node:crypto';
import type { Answer, Platform, RequestOptions } from './platform.ts';

type Client = Pick<Platform, 'request' | 'admin' | 'jobIn'>;
type Options = Omit<RequestOptions, 'key'>;

export interface Tenant {
  readonly organization: string;
  /** Plaintext. */
  readonly key: string;
  readonly keyId: string;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  put(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** Any request with the tenant's key. */
  send(method: string, path: string, options?: Options): Promise<Answer>;
  /** Runs a skill to its end; the job. */
  run(skill: string, input: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Accepts a run; its job's id. */
  start(skill: string, input: unknown, headers?: Record<string, string>): Promise<string>;
  jobIn(jobId: string, ...statuses: string[]): Promise<Answer>;
}

export const newOrganization = () => `org-${randomBytes(6).toString('hex')}`;

/** A new organization, or a further key of one when `fields` name it. */
export async function newTenant(
  platform: Client,
  fields: Record<string, unknown> = {},
): Promise<Tenant> {
  const issued = await platform.admin('POST', '/admin/api-keys', {
    client_name: 'a test',
    scopes: ['*'],
    rate_limit: 1_000_000,
    organization_id: newOrganization(),
    ...fields,
  });
  if (issued.status !== 201) throw new Error(`No key: ${issued.text}`);
  const { id: keyId, plaintext_key: key, organization_id: organization } = issued.body;

  const send = (method: string, path: string, options: Options = {}) =>
    platform.request(method, path, { ...options, key });
  const post = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
    send('POST', path, { body, headers });
  return {
    organization,
    key,
    keyId,
    send,
    post,
    get: (path, headers = {}) => send('GET', path, { headers }),
    put: (path, body, headers = {}) => send('PUT', path, { body, headers }),
    delete: (path) => send('DELETE', path),
    run: (skill, input, headers = {}) =>
      post(`/api/${skill}`, input, { prefer: 'wait=30', ...headers }),
    async start(skill, input, headers = {}) {
      const answer = await post(`/api/${skill}`, input, headers);
      if (answer.status !== 202) throw new Error(`Not accepted: ${answer.text}`);
      return answer.body.job_id as string;
    },
    jobIn: (jobId, ...statuses) => platform.jobIn(key, jobId, ...statuses),
  };
}
