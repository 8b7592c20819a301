/**
 * What reads a caller's text in the main process takes time that is linear in its length, and what validates by a
 * stranger's schema ends.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import { leastCpuMsOf } from '../../../test/support/cpu-time.ts';
import { growthOf, linearGrowthMax } from '../../../test/support/growth.ts';
import { hostileCases, largeCases, refusedSchemas } from '../../../test/support/hostile-schemas.ts';
import { cleanJson } from '../../core/executors/active-run.ts';
import { likenessOf } from '../../core/memories/near-duplicates.ts';
import { queryOf } from '../../core/memories/query.ts';
import { termsText } from '../../core/memories/terms.ts';
import { readWords } from '../../core/memories/words.ts';
import { transcriptOf } from '../../core/thinking/compaction-plan.ts';
import { Estimates } from '../../core/thinking/estimates.ts';
import { quoted } from '../../core/thinking/quoted.ts';
import { readArguments } from '../../core/thinking/tool-arguments.ts';
import { boundedValidator, checkBoundedSchema } from '../../kernel/bounded-schema.ts';
import { systemClock } from '../../kernel/clock.ts';
import { compileSchema } from '../../kernel/json-schema.ts';
import { createLogger } from '../../kernel/log.ts';
import { momentOf } from '../../kernel/moment.ts';
import { patternSize } from '../../kernel/pattern-size.ts';
import { SchemaError } from '../../kernel/schema-rules.ts';
import { canonicalJson, isCleanText, normalized } from '../../kernel/text.ts';
import { isStandardSignature } from '../../kernel/webhook-signature.ts';
import { shownText, withoutHiding } from '../../platform/remote-skills/definitions.ts';
import { refuseHeavy } from '../../platform/remote-skills/mcp/heavy-messages.ts';
import { plainEvents } from '../../platform/remote-skills/mcp/plain-events.ts';
import { secretsInArgs, secretsInQuery } from '../../platform/remote-skills/recognize-secrets.ts';
import { nameTools } from '../../platform/remote-skills/skill-names.ts';
import { parseCron } from '../../platform/schedules/cron.ts';
import { payloadOf } from '../../platform/triggers/payload.ts';
import { requireSignature } from '../../platform/triggers/signature.ts';
import { checkUrl } from '../egress/url-guard.ts';
import { EventDataReader } from '../models/event-data.ts';
import { sizeOfText } from '../models/text-size.ts';
import { ThinkTagFilter } from '../models/think-tag-filter.ts';
import { adminHook } from './authenticate.ts';
import { parseJsonBody } from './body.ts';
import { ClientAddresses } from './client-address.ts';
import { acceptsGzip } from './compress.ts';
import { waitSeconds } from './prefer.ts';
import { isGuarded, routedUrl, unreadableParameter } from './url.ts';
import { WrongSecrets } from './wrong-secrets.ts';

/** A text of a length: a beginning, a piece that is repeated, an end. */
const texts = (pieces: readonly [begin: string, repeated: string, end: string][]) =>
  pieces.map(
    ([begin, repeated, end]) =>
      [
        JSON.stringify([begin, repeated, end]).slice(1, -1),
        (length: number) => begin + repeated.repeat(Math.ceil(length / repeated.length)) + end,
      ] as const,
  );

/** What makes careless patterns and loops slow: runs, runs that do not end, openings without a closing. */
const hostile = texts([
  ['', 'a', ''],
  ['', 'a', '!'],
  ['', ' ', ''],
  ['', ' ', 'x'],
  ['"', 'a', ''],
  ['wait="', 'a', ''],
  ['', '"', ''],
  ['', 'a="', ''],
  ['', '\\', ''],
  ['"', '\\', ''],
  ['"', '\\"', ''],
  ['', 'a,', ''],
  ['', 'a=b;', ''],
  ['wait=', '1', 'x'],
  ['wait=1', ' ', 'x'],
  ['Bearer', ' ', ''],
  ['', '=', 'x'],
  ['', '/', ''],
  ['', '//', 'x'],
  ['a://', '/', '@'],
  ['/api/', '%', ''],
  ['/api/a?', '%61&', '%'],
  ['/api/a?', 'a=1&', '%00'],
  ['', '.', 'x'],
  ['', '1', 'x'],
  ['', '0-', 'x'],
  ['* * * * ', '1,', ''],
  ['', '* ', ''],
  ['', '[', ''],
  ['', '{"a":', ''],
  ['[', '1,', '1]'],
  ['["', '\\\\', '\\u0000"]'],
  ['', '\\', ' \\u0000'],
  ['"', '\\u0061', '"'],
  ['{"__proto__"', ' ', '}'],
  ['', '\u0301', ''],
  ['', '\u0301\u0323', ''],
  ['a', '\uff9e\u0301', ''],
  ['', 'ก', ''],
  ['', '語', ''],
  ['data: ', 'x', ''],
  ['', 'data: x\n', ''],
  ['', '\n', ''],
  ['', '\r', '\n'],
  ['\r', '\n', ''],
  ['', '\\p{', ''],
  ['', '<', ''],
  ['', '\u200b', ''],
]);

const formats = [
  [
    'date',
    'date-time',
    'time',
    'duration',
    'email',
    'hostname',
    'ipv4',
    'ipv6',
    'uri',
    'uri-reference',
  ],
  [
    'uri-template',
    'url',
    'uuid',
    'json-pointer',
    'relative-json-pointer',
    'regex',
    'byte',
    'iso-date-time',
  ],
].flat();

const wrongSecrets = new WrongSecrets(systemClock, createLogger('silent'));
const adminWith = (authorization: string) =>
  adminHook('s'.repeat(16), () => Promise.resolve(false), wrongSecrets)(
    {
      headers: { authorization },
      raw: { rawHeaders: [] },
      clientAddress: '127.0.0.1',
      routeOptions: {},
    } as unknown as FastifyRequest,
    {} as FastifyReply,
    () => {},
  );
const proxy = new BlockList();
proxy.addAddress('127.0.0.1');
const clients = new ClientAddresses(proxy);
const clientBy = (header: string) => (text: string) =>
  clients.of({
    socket: { remoteAddress: '127.0.0.1' },
    headers: { [header]: text },
  } as unknown as IncomingMessage);
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const unique = compileSchema({ type: 'array', uniqueItems: true });
const patterned = compileSchema({ type: 'string', pattern: '^(a+)+$' });

const piecesOf = (text: string, length = 4_096) =>
  Array.from({ length: Math.ceil(text.length / length) }, (_, i) =>
    text.slice(i * length, (i + 1) * length),
  );

async function readEvents(text: string): Promise<void> {
  const body = ReadableStream.from(piecesOf(text).map((piece) => Buffer.from(piece)));
  for await (const _ of plainEvents(body));
}

const measure = new Estimates().measure(['a/model']);

function summarized(text: string): string {
  const messages = piecesOf(text, 8_000).map((piece) => ({ role: 'user', text: piece }) as const);
  const covered = { messages, task: 0, covered: 0, summary: { text } };
  return transcriptOf(covered, messages.length, Number.POSITIVE_INFINITY, measure);
}

const readers: Record<string, (text: string) => unknown> = {
  'the Accept-Encoding header': acceptsGzip,
  'the Prefer header': waitSeconds,
  'an address': (text) => [routedUrl(text), isGuarded(text), unreadableParameter(text)],
  'the Authorization header': adminWith,
  'the x-forwarded-for header': clientBy('x-forwarded-for'),
  'the forwarded header': clientBy('forwarded'),
  'a quoted forwarded header': (text) => clientBy('forwarded')(`for="${text}`),
  'a body': (text) => parseJsonBody(Buffer.from(text)),
  'a body of a trigger': (text) => payloadOf(form, Buffer.from(text)),
  'the signature of a trigger': (text) =>
    requireSignature({ 'x-hub-signature-256': text }, 'secret', Buffer.from(text), 0),
  'a Standard Webhooks signature': (text) =>
    isStandardSignature(text, 'secret', { id: 'id', timestamp: 0, body: '' }, 0),
  'clean text': isCleanText,
  'equal JSON': (text) => canonicalJson(text.split(',')),
  'a moment': momentOf,
  'a cron expression': parseCron,
  'an outgoing url': (text) =>
    checkUrl(text, { schemes: ['https:'], fragment: 'refused', allowed: [] }),
  'the terms of a memory': (text) => termsText(readWords(text), 'fact'),
  'the words of a query': queryOf,
  'what an executor says': cleanJson,
  'what a provider says': (text) => {
    const reader = new EventDataReader();
    for (const piece of piecesOf(text)) reader.push(piece);
    reader.rest();
  },
  'thinking before an answer': (text) => {
    const filter = new ThinkTagFilter();
    for (const piece of piecesOf(text, 100)) filter.push(piece);
    filter.end();
  },
  'the arguments of a tool': readArguments,
  'the size of a prompt': sizeOfText,
  'a conversation that is summarized': summarized,
  'a text that is quoted in a prompt': (text) => quoted(text, 'memory'),
  'memories that may be alike': (text) => likenessOf(text, `${text} b`),
  'a normal form': (text) => [normalized(text, 'NFC'), normalized(text, 'NFKD')],
  'the name of a tool': (text) => nameTools([{ tool: text }]),
  'a text of a server': (text) => [shownText(text), withoutHiding(JSON.stringify(text))],
  'the event stream of a server': readEvents,
  'the size of a message of a server': refuseHeavy,
  'secrets in an address': secretsInQuery,
  'secrets in arguments': (text) => secretsInArgs([text, `https://a.example/${text}`]),
  'the size of a pattern': patternSize,
  'unique items': (text) => unique(text.split(',')),
  'a pattern of a schema': patterned,
  ...Object.fromEntries(
    formats.map((format) => [`the format ${format}`, compileSchema({ type: 'string', format })]),
  ),
};

test.each(Object.entries(readers))('%s is read in linear time', async (_name, read) => {
  for (const [text, inputOf] of hostile) {
    expect(await growthOf(inputOf, read), text).toBeLessThan(linearGrowthMax);
  }
});

/** What docs/security.md promises of a schema that is checked twice, and of a value. */
const schemaMs = 500;
const valueMs = 2_000;

test.each(Object.entries(refusedSchemas))(
  "a stranger's schema is refused at once: %s",
  async (_name, schema) => {
    const took = await leastCpuMsOf(() => {
      expect(() => checkBoundedSchema(schema)).toThrow(SchemaError);
      // One that an earlier version has stored.
      expect(() => boundedValidator(schema)([null])).toThrow(SchemaError);
    }, schemaMs);
    expect(took).toBeLessThan(schemaMs);
  },
);

test.each(Object.entries(hostileCases))(
  "a value is validated by a stranger's schema in bounded time: %s",
  async (_name, make) => {
    const { schema, value } = make();
    checkBoundedSchema(schema);
    const took = await leastCpuMsOf(() => {
      let found: unknown;
      try {
        found = boundedValidator(schema)(value);
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        found = error.message;
      }
      expect(found).not.toBeNull();
    }, valueMs);
    expect(took).toBeLessThan(valueMs);
  },
);

test.each(Object.entries(largeCases))(
  "a large value that fits a stranger's schema is taken: %s",
  async (_name, make) => {
    const { schema, value } = make();
    const taken = () => expect(boundedValidator(schema)(value)).toBeNull();
    const took = await leastCpuMsOf(taken, valueMs);
    expect(took).toBeLessThan(valueMs);
  },
);
