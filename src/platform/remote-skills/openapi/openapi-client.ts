/** Reads OpenAPI documents and calls their operations, over guarded connections. */

import { extname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { EgressError } from '../../../adapters/egress/egress-error.ts';
import { Egress, type EgressResponse } from '../../../adapters/egress/guarded-fetch.ts';
import { startSandbox } from '../../../adapters/sandbox/sandbox.ts';
import { outputBytesMax } from '../../../core/executors/limits.ts';
import { boundedValidator } from '../../../kernel/bounded-schema.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Json } from '../../../kernel/json.ts';
import { issuesText, type JsonSchema } from '../../../kernel/json-schema.ts';
import { SchemaError } from '../../../kernel/schema-rules.ts';
import {
  type CalledTool,
  type Discovered,
  RemoteFault,
  type RemoteSource,
  type RemoteTool,
} from '../remote-kind.ts';
import type { RemoteRun } from '../remote-run.ts';
import { type BuiltRequest, buildRequest, InputError } from './build-request.ts';
import { authorized, ServiceTokens, setByCredentials } from './credentials.ts';
import { isIdempotentMethod, type Operation, type OperationPlan } from './operation.ts';
import { type AnswerFault, readAnswer } from './read-answer.ts';
import type { ListedOperations, ReadDocument, ReadRequest } from './read-document.ts';
import { credentialsOriginOf, documentBytesMax, type OpenapiSettings } from './settings.ts';

const faultCharsMax = 500;

/** The module that the sandboxed process imports. */
const reader = new URL(`./read-document${extname(import.meta.url)}`, import.meta.url).href;
/** Processor time for a document, and heap. */
const readMs = 15_000;
const readMemoryMb = 256;
/** Milliseconds in which a document has to arrive; `timeout_ms` where that is less. */
const fetchMs = 20_000;
/** Redirects of a request that only reads. */
const redirectsMax = 3;
/** Calls of one attempt, where the service asks to wait. */
const triesMax = 3;
const waitMsDefault = 1_000;

export class OpenapiClient {
  readonly #clock: Clock;
  readonly #egress: Egress;
  readonly #tokens: ServiceTokens;

  constructor(allowed: AllowList, clock: Clock) {
    this.#clock = clock;
    this.#egress = new Egress({ allowed, schemes: ['https:', 'http:'] });
    this.#tokens = new ServiceTokens(this.#egress, clock);
  }

  async discover(source: RemoteSource, signal: AbortSignal): Promise<Discovered> {
    const settings = source.settings as unknown as OpenapiSettings;
    const text = source.document ?? (await this.#fetchDocument(source, signal));
    const { operations, leftOut, about } = (await inSandbox('readDocument', {
      text,
      operations: settings.operations,
      credentials: setByCredentials(settings.auth),
      baseUrl: settings.base_url,
      documentUrl: settings.url,
    } satisfies ReadRequest)) as ReadDocument;
    const learned = learnedOf(source, { ...about });
    const view = { viewer: null, tools: operations.map(toolOf), leftOut };
    return { views: [view], knownViewers: 'all', about: { ...about }, ...learned };
  }

  /** The operations of a document, to choose from. Throws RemoteFault. */
  async operationsOf(source: RemoteSource, signal: AbortSignal): Promise<ListedOperations> {
    const text = source.document ?? (await this.#fetchDocument(source, signal));
    this.#tokens.forget(source.id);
    return (await inSandbox('listOperations', { text })) as ListedOperations;
  }

  async call(
    source: RemoteSource,
    tool: CalledTool,
    input: unknown,
    run: RemoteRun,
  ): Promise<unknown> {
    const plan = tool.request as unknown as OperationPlan;
    const { idempotent_tools: named } = source.settings as unknown as OpenapiSettings;
    const mayRepeat = isIdempotentMethod(plan.method) || named.includes(tool.name);
    const request = await buildRequest(plan, input as Json).catch((error: unknown) => {
      throw error instanceof InputError ? new RemoteFault(error.message) : error;
    });
    const endsAt = this.#clock.monotonic() + run.request.timeoutMs;
    for (let tries = 1; ; tries++) {
      const answer = await this.#send(source, { tool: tool.name, request }, run);
      const result = readAnswer(tool.name, answer, this.#clock.now());
      if (result.kind === 'output') {
        if (result.note !== null) run.log(result.note);
        const misfit = misfitNote(tool.output, result.output);
        if (misfit !== null) run.log(misfit);
        return result.output;
      }
      const { reason, retryAfterMs } = result.fault;
      const waitMs = retryAfterMs ?? waitMsDefault * tries;
      const isInTime = this.#clock.monotonic() + waitMs < endsAt;
      // A job of one attempt waits here; others give their slot back meanwhile.
      const waitsHere =
        reason === 'too many requests' && !mayRepeat && tries < triesMax && isInTime;
      if (!waitsHere) throw faultOfAnswer(result.fault);
      run.log(`${tool.name} was answered with 429; it is called again in ${waitMs / 1000} s`);
      await wait(waitMs, undefined, { signal: run.signal });
    }
  }

  async close(sourceId?: string): Promise<void> {
    this.#tokens.forget(sourceId);
    if (sourceId === undefined) await this.#egress.close();
  }

  async #fetchDocument(source: RemoteSource, signal: AbortSignal): Promise<string> {
    const settings = source.settings as unknown as OpenapiSettings;
    const { url, base_url: base, timeout_ms: timeoutMs } = settings;
    if (url === null) throw new RemoteFault('There is no document: set document or url');
    const plain: BuiltRequest = { method: 'GET', url, headers: { accept: '*/*' }, body: null };
    // Credentials are for the service; the document may be anywhere.
    const { origin } = new URL(url);
    const isSameHost =
      base !== null &&
      new URL(base).origin === origin &&
      credentialsOriginOf(settings, source.about) === origin;
    try {
      const request = isSameHost ? await authorized(this.#tokens, source, plain, signal) : plain;
      const { status, body } = await this.#egress.request(request.url, {
        headers: request.headers,
        ...{ maxBytes: documentBytesMax, redirects: redirectsMax, signal },
        timeoutMs: Math.min(fetchMs, timeoutMs),
      });
      if (status === 200) return body.toString('utf8');
      throw new RemoteFault(`The document was answered with ${status}`);
    } catch (error) {
      throw egressFault('The document', error);
    }
  }

  /** Sends the request; a second time with a new token where the service refuses a cached one. */
  async #send(
    source: RemoteSource,
    { tool, request }: { tool: string; request: BuiltRequest },
    run: RemoteRun,
  ): Promise<EgressResponse> {
    for (let tries = 1; ; tries++) {
      const { method, url, headers, body } = await authorized(
        this.#tokens,
        source,
        request,
        run.signal,
        run,
      );
      run.sending();
      const answer = await this.#egress
        .request(url, {
          ...{ method, headers, signal: run.signal, maxBytes: outputBytesMax },
          ...(body !== null && { body }),
          // The run's own limit comes first.
          timeoutMs: run.request.timeoutMs + 1_000,
          redirects: method === 'GET' || method === 'HEAD' ? redirectsMax : 0,
        })
        .catch((error: unknown) => {
          throw run.signal.aborted ? run.signal.reason : egressFault(tool, error);
        });
      const isRefused = answer.status === 401 && tries === 1 && this.#tokens.forget(source.id);
      if (!isRefused) return answer;
    }
  }
}

/** The origin that the credentials are for, where this is the first refresh after they were set. */
function learnedOf(source: RemoteSource, about: Json): Pick<Discovered, 'learned'> {
  const settings = source.settings as unknown as OpenapiSettings;
  const { credentials_origin: stored, ...given } = settings;
  if (settings.auth.type === 'none' || typeof stored === 'string') return {};
  const origin = credentialsOriginOf(settings, source.about) ?? credentialsOriginOf(given, about);
  return { learned: { credentials_origin: origin } };
}

/** Reads a document in a process of its own. */
async function inSandbox(name: string, input: object): Promise<unknown> {
  const sandbox = await startSandbox({ module: reader, memoryMb: readMemoryMb });
  try {
    const answer = await sandbox.ask({ function: name, input }, readMs);
    if (typeof answer === 'string') throw new RemoteFault(unread[answer]);
    if ('error' in answer) throw new RemoteFault(answer.error);
    return answer.value;
  } finally {
    await sandbox.stop();
  }
}

const unread = {
  late: `The document takes more than ${readMs / 1000} s to read`,
  exhausted: `The document takes more than ${readMemoryMb} MB of memory to read`,
  gone: 'The process that read the document ended without a result',
  'held up': 'The machine was too busy to read the document in time',
};

function toolOf(operation: Operation): RemoteTool {
  const { tool, skillName, title, description, input, output, plan, operationId } = operation;
  const { isDeprecated } = operation;
  return {
    ...{ tool, skillName, title, description, input, output },
    request: { ...plan },
    annotations: { operationId, deprecated: isDeprecated },
    saysIdempotent: isIdempotentMethod(plan.method),
  };
}

function faultOfAnswer({ message, reason, retryAfterMs }: AnswerFault): RemoteFault {
  switch (reason) {
    case 'refused':
      return new RemoteFault(message);
    case 'credentials':
      return new RemoteFault(message, { code: 'missing_credentials' });
    case 'too many requests':
    case 'unavailable':
      return new RemoteFault(message, {
        ...{ code: 'upstream_unavailable', retryable: true, retryAfterMs },
        hadNoEffect: reason === 'too many requests',
      });
  }
}

function egressFault(what: string, error: unknown): unknown {
  if (!(error instanceof EgressError)) return error;
  const message = `${what} could not be asked. ${error.message}`;
  const code = error.code === 'too_large' ? 'skill_execution_failed' : 'upstream_unavailable';
  const { retryable, sent } = error;
  return new RemoteFault(message, { code, retryable, hadNoEffect: !sent, cause: error });
}

/** What of an answer does not fit what its document describes, as a line of the run's log; null where all does. */
function misfitNote(schema: JsonSchema | null, output: unknown): string | null {
  if (schema === null) return null;
  try {
    const issues = boundedValidator(schema)(output);
    if (issues === null) return null;
    const fault = issuesText(issues).slice(0, faultCharsMax);
    return `The answer is not as the document describes it: ${fault}`;
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return `The answer was not compared with the document, whose schema ${error.message}`;
  }
}
