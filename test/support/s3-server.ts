/** S3-compatible storage in memory: one bucket, which checks the signature and the digest of every request by its own code. */
import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { receiveHttp } from '../fixtures/receiver/receiver.ts';

export const s3Keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a secret of the tests' };
const region = 'eu-test-1';

const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
const hmac = (key: string | Buffer, text: string) =>
  createHmac('sha256', key).update(text).digest();

/** The signature that Signature Version 4 prescribes for a request with these headers. */
export function signatureOf(
  { method = '', url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  secret: string,
): string {
  const [, date, zone, service, names = ''] =
    /Credential=[^/]+\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+)/.exec(
      headers.authorization ?? '',
    ) ?? [];
  const signed = names.split(';');
  const [path = '', query = ''] = url.split('?');
  const canonical = [
    method,
    path,
    query,
    ...signed.map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    names,
    String(headers['x-amz-content-sha256']),
  ].join('\n');
  const scope = `${date}/${zone}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const key = [zone, service, 'aws4_request'].reduce<Buffer>(
    (made, part) => hmac(made, part ?? ''),
    hmac(`AWS4${secret}`, date ?? ''),
  );
  return hmac(key, text).toString('hex');
}

function partOf(bytes: Buffer, range: string | undefined): [number, Buffer] {
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
  return range === undefined ? [200, bytes] : [206, bytes.subarray(Number(start), Number(end) + 1)];
}

export interface S3Server {
  readonly objects: Map<string, Buffer>;
  /** What the platform is started with to keep its files here. */
  readonly environment: Record<string, string>;
  /** Has every request refused until it is null again. */
  refuseWith(status: number | null): void;
  /** Has reads of what is not there refused as they are for credentials that may not list the bucket, or with another code. */
  forbidListing(code?: string): void;
  /** Has reads answered once it resolves, until it is null again. */
  holdReads(hold: (() => Promise<void>) | null): void;
  close(): Promise<void>;
}

export async function startS3(): Promise<S3Server> {
  const objects = new Map<string, Buffer>();
  let refusal: number | null = null;
  let gone: [number, string] = [404, ''];
  let hold: (() => Promise<void>) | null = null;
  const answer = async (request: IncomingMessage): Promise<[number, Buffer | string]> => {
    const body = await buffer(request);
    if (refusal !== null) return [refusal, '<Error><Code>InternalError</Code></Error>'];
    const given = /Signature=([0-9a-f]{64})/.exec(request.headers.authorization ?? '')?.[1];
    if (given !== signatureOf(request, s3Keys.secretAccessKey)) {
      return [403, '<Error><Code>SignatureDoesNotMatch</Code></Error>'];
    }
    if (request.headers['x-amz-content-sha256'] !== sha256(body)) {
      return [400, '<Error><Code>XAmzContentSHA256Mismatch</Code></Error>'];
    }
    const key = decodeURIComponent((request.url ?? '').replace('/bucket/', ''));
    if (request.method === 'PUT') objects.set(key, body);
    if (request.method === 'DELETE') objects.delete(key);
    if (request.method === 'GET') await hold?.();
    const found = objects.get(key);
    if (/GET|HEAD/.test(request.method ?? ''))
      return found === undefined ? gone : partOf(found, request.headers.range);
    return [request.method === 'PUT' ? 200 : 204, ''];
  };
  const receiver = await receiveHttp((request, response) => {
    answer(request).then(
      ([status, body]) =>
        response.writeHead(status, { 'content-length': Buffer.byteLength(body) }).end(body),
      () => response.destroy(),
    );
  });
  return {
    objects,
    environment: {
      FILES_S3_URL: `${receiver.origin}/bucket`,
      FILES_S3_REGION: region,
      FILES_S3_ACCESS_KEY_ID: s3Keys.accessKeyId,
      FILES_S3_SECRET_ACCESS_KEY: s3Keys.secretAccessKey,
    },
    refuseWith(status) {
      refusal = status;
    },
    forbidListing(code = 'AccessDenied') {
      gone = [403, `<Error><Code>${code}</Code></Error>`];
    },
    holdReads(next) {
      hold = next;
    },
    close: () => receiver.close(),
  };
}
