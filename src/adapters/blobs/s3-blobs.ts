/**
 * Keeps the bytes of files in a bucket of S3-compatible storage. Requests are signed with the digest of their body, so the
 * storage refuses bytes that changed on the way. Nothing is retried here: the caller decides.
 */
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { AwsV4Signer } from 'aws4fetch';
import { Agent, type Dispatcher, request } from 'undici';
import { type BlobSource, type Blobs, type BytePart, storageFault } from './blobs.ts';

export interface S3Settings {
  /** Under which keys are appended: the endpoint with the bucket, in the path or in the host. */
  readonly url: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
/** For a connection, for the start of an answer, and between two pieces of it. */
const connectMs = 10_000;
const silenceMs = 60_000;
const connectionsMax = 64;
/** An object without bytes, of no organization, which shows whether the credentials may read objects. */
const readableKey = '.readable';
/** Characters of a refusal that the error shows. */
const shownMax = 300;

export class S3Blobs implements Blobs {
  readonly spoolDirectory: string;
  readonly #settings: S3Settings;
  readonly #agent: Agent;

  /** Without a spool directory it is a temporary one, which the user has for itself. */
  constructor(settings: S3Settings, spoolDirectory: string | null = null) {
    this.spoolDirectory =
      spoolDirectory ?? join(tmpdir(), `skillwright-files-${process.getuid?.() ?? ''}`);
    this.#settings = settings;
    this.#agent = new Agent({
      connect: { timeout: connectMs },
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
      connections: connectionsMax,
    });
  }

  async put(key: string, { path, bytes, sha256 }: BlobSource): Promise<void> {
    const body = createReadStream(path);
    try {
      const answer = await this.#send('PUT', key, sha256, { body, length: bytes });
      await done(answer, key);
    } finally {
      body.destroy();
    }
  }

  async has(key: string, bytes: number): Promise<boolean> {
    const answer = await this.#send('HEAD', key, emptyDigest);
    const { statusCode: status, headers } = answer;
    // Credentials that may not list the bucket get 403 for what is not there.
    if (status === 403) await answer.body.dump();
    else await done(answer, key, 404);
    return status === 200 && Number(headers['content-length']) === bytes;
  }

  async read(key: string, part?: BytePart): Promise<Readable | null> {
    const range = part && { range: `bytes=${part.start}-${part.end}` };
    const answer = await this.#send('GET', key, emptyDigest, undefined, range);
    const { statusCode: status } = answer;
    if (status === (part === undefined ? 200 : 206)) return answer.body;
    const text = await beginningOf(answer.body);
    const isDenied = status === 403 && text.includes('<Code>AccessDenied</Code>');
    if (status === 404 || (isDenied && (await this.#mayRead()))) return null;
    throw refusalOf(status, key, text);
  }

  /** Whether the credentials may read what is there: those that may not list the bucket get 403 for what is not. */
  async #mayRead(): Promise<boolean> {
    const put = await this.#send('PUT', readableKey, emptyDigest, {
      body: Readable.from([]),
      length: 0,
    });
    await put.body.dump();
    const read = await this.#send('GET', readableKey, emptyDigest);
    await read.body.dump();
    return read.statusCode === 200;
  }

  async remove(key: string): Promise<void> {
    await done(await this.#send('DELETE', key, emptyDigest), key, 404);
  }

  close(): Promise<void> {
    return this.#agent.close();
  }

  async #send(
    method: 'GET' | 'HEAD' | 'PUT' | 'DELETE',
    key: string,
    sha256: string,
    upload?: { readonly body: Readable; readonly length: number },
    range?: { readonly range: string },
  ): Promise<Dispatcher.ResponseData> {
    const { url, region, accessKeyId, secretAccessKey } = this.#settings;
    const signed = await new AwsV4Signer({
      method,
      url: `${url}/${key}`,
      headers: { 'x-amz-content-sha256': sha256, ...range },
      service: 's3',
      region,
      accessKeyId,
      secretAccessKey,
    }).sign();
    const headers: Record<string, string> = Object.fromEntries(signed.headers);
    if (upload !== undefined) headers['content-length'] = String(upload.length);
    try {
      return await request(signed.url, {
        method,
        headers,
        body: upload?.body ?? null,
        dispatcher: this.#agent,
      });
    } catch (cause) {
      throw storageFault((cause as Error).message, cause);
    }
  }
}

async function done(answer: Dispatcher.ResponseData, key: string, also = 0): Promise<void> {
  const { statusCode: status } = answer;
  if ((status < 200 || status > 299) && status !== also) {
    throw refusalOf(status, key, await beginningOf(answer.body));
  }
  await answer.body.dump();
}

async function beginningOf(body: Dispatcher.ResponseData['body']): Promise<string> {
  let text = '';
  for await (const piece of body.setEncoding('utf8')) {
    text += piece;
    if (text.length > shownMax) break;
  }
  return text.slice(0, shownMax);
}

const refusalOf = (status: number, key: string, text: string) =>
  storageFault(`it answered ${status} for ${key}: ${text}`);
