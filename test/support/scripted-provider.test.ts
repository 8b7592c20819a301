import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answering,
  callingTools,
  inTurn,
  type Reply,
  type ScriptedProvider,
  startScriptedProvider,
} from './scripted-provider.ts';

let provider: ScriptedProvider;

beforeAll(async () => {
  provider = await startScriptedProvider();
});
afterAll(() => provider.close());

const question = [{ role: 'user', content: 'Hello?' }];

function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${provider.url}${path}`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', max_tokens: 10, messages: question, ...body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** The data of the events of a stream, and whether it was cut. */
// biome-ignore lint/suspicious/noExplicitAny: events of many shapes
async function eventsOf(response: Response): Promise<{ events: any[]; isCut: boolean }> {
  let text = '';
  let isCut = false;
  try {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
  } catch {
    isCut = true;
  }
  const data = text
    .split('\n')
    .flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []));
  return { events: data.map((one) => (one.startsWith('{"') ? parsed(one) : one)), isCut };
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
const jsonOf = (response: Response): Promise<any> => response.json();

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const lastRequest = () => provider.requests.at(-1)!;
const reply: Reply = {
  text: 'Let me see.',
  toolCalls: [{ name: 'weather', input: { city: 'Rome' }, id: 'c1' }],
  usage: { prompt: 11, completion: 7 },
  piece: 6,
};

describe('chat completions', () => {
  const path = '/v1/chat/completions';

  test('an answer that is not streamed is one object', async () => {
    provider.script(() => reply);

    const answer = await jsonOf(await post(path, {}));

    expect(answer).toMatchObject({
      object: 'chat.completion',
      choices: [
        {
          message: {
            role: 'assistant',
            content: 'Let me see.',
            tool_calls: [{ id: 'c1', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    });
  });

  test('a stream has text and arguments in pieces, then its end, its usage and [DONE]', async () => {
    provider.script(() => reply);

    const { events } = await eventsOf(
      await post(path, { stream: true, stream_options: { include_usage: true } }),
    );

    const deltas = events.slice(0, -3).map((event) => event.choices[0].delta);
    expect(deltas).toEqual([
      { role: 'assistant', content: '' },
      { content: 'Let me' },
      { content: ' see.' },
      {
        tool_calls: [
          { index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '' } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"city' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '":"Rom' } }] },
      { tool_calls: [{ index: 0, function: { arguments: 'e"}' } }] },
    ]);
    expect(events.at(-3).choices[0].finish_reason).toBe('tool_calls');
    expect(events.at(-2)).toMatchObject({ choices: [], usage: { prompt_tokens: 11 } });
    expect(events.at(-1)).toBe('[DONE]');
  });

  test('usage is streamed to clients that ask for it, and never by a provider that does not report it', async () => {
    const usages = async (usage: Reply['usage'], options: object) => {
      provider.script(answering('Hi.', usage === undefined ? {} : { usage }));
      const { events } = await eventsOf(await post(path, { stream: true, ...options }));
      return events.filter((event) => event.usage !== undefined).length;
    };
    const asked = { stream_options: { include_usage: true } };

    expect(await usages(undefined, {})).toBe(0);
    expect(await usages(undefined, asked)).toBe(1);
    expect(await usages(null, asked)).toBe(0);
  });

  test.each([
    [{ messages: [] }, 'required'],
    [{ messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }, 'no call x'],
    [{ messages: [call('a', 'weather'), ...question] }, 'without a result'],
    [{ messages: [call('a', 'no such!'), ...question] }, 'not valid'],
    [{ tools: [{ function: { name: 'no such!' } }] }, 'not valid'],
  ])('the request %o is refused', async (body, words) => {
    const response = await post(path, body);

    expect(response.status).toBe(400);
    expect((await jsonOf(response)).error.message).toContain(words);
  });

  function call(id: string, name: string) {
    const tool = { id, type: 'function', function: { name, arguments: '{}' } };
    return { role: 'assistant', content: null, tool_calls: [tool] };
  }
});

describe('messages', () => {
  const path = '/v1/messages';

  test('an answer that is not streamed is one object', async () => {
    provider.script(() => ({ ...reply, thinking: { text: 'Hm.', signature: 's' } }));

    const answer = await jsonOf(await post(path, {}));

    expect(answer).toMatchObject({
      type: 'message',
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 's' },
        { type: 'text', text: 'Let me see.' },
        { type: 'tool_use', id: 'c1', name: 'weather', input: { city: 'Rome' } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 11, output_tokens: 7 },
    });
  });

  test('a stream has blocks that begin, come in pieces and end', async () => {
    provider.script(() => reply);

    const { events } = await eventsOf(await post(path, { stream: true }));

    expect(
      events.map(({ type, index, delta }) => [type, index, ...Object.values(delta ?? {})]),
    ).toEqual([
      ['message_start', undefined],
      ['ping', undefined],
      ['content_block_start', 0],
      ['content_block_delta', 0, 'text_delta', 'Let me'],
      ['content_block_delta', 0, 'text_delta', ' see.'],
      ['content_block_stop', 0],
      ['content_block_start', 1],
      ['content_block_delta', 1, 'input_json_delta', ''],
      ['content_block_delta', 1, 'input_json_delta', '{"city'],
      ['content_block_delta', 1, 'input_json_delta', '":"Rom'],
      ['content_block_delta', 1, 'input_json_delta', 'e"}'],
      ['content_block_stop', 1],
      ['message_delta', undefined, 'tool_use', null],
      ['message_stop', undefined],
    ]);
    expect(events[0].message.usage.input_tokens).toBe(11);
    expect(events.at(-2).usage.output_tokens).toBe(7);
  });

  const use = (id: string, input: unknown = {}) => ({
    role: 'assistant',
    content: [{ type: 'tool_use', id, name: 'weather', input }],
  });

  test.each([
    [{ max_tokens: undefined }, 'max_tokens'],
    [{ messages: [{ role: 'user', content: '' }] }, 'non-empty'],
    [{ messages: [...question, use('a'), ...question] }, 'without tool_result'],
    [{ messages: [...question, use('a b')] }, 'invalid name or id'],
    [{ messages: [...question, use('a', 'text')] }, 'valid dictionary'],
    [{ messages: [use('a')] }, 'not the user'],
  ])('the request %o is refused', async (body, words) => {
    const response = await post(path, body);

    expect(response.status).toBe(400);
    expect((await jsonOf(response)).error.message).toContain(words);
  });
});

describe.each(['/v1/chat/completions', '/v1/messages'])('%s', (path) => {
  test('what was asked is recorded, and what it cost is counted', async () => {
    provider.script(answering('A dozen cha.'));
    const before = provider.requests.length;

    await eventsOf(await post(path, { stream: true }));

    const request = await provider.ended(before);
    expect(request).toMatchObject({
      index: before,
      model: 'm',
      messages: question,
      endedBy: 'answered',
      cost: { prompt: Math.ceil(JSON.stringify(question).length / 4), completion: 3 },
    });
  });

  test('a status is answered with its headers, and costs nothing', async () => {
    provider.script(() => ({ fault: { status: 429, headers: { 'retry-after': '3' } } }));

    const response = await post(path, { stream: true });

    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('3');
    expect((await jsonOf(response)).error.message).toBe('scripted 429');
    expect(lastRequest().cost).toBeNull();
  });

  test.each(['cut', 'short', 'malformed', 'error-event'] as const)(
    'a stream with the fault %s does not come to its end',
    async (fault) => {
      provider.script(answering('The sky is blue.', { fault, faultAfter: 3, piece: 4 }));

      const { events, isCut } = await eventsOf(await post(path, { stream: true }));

      const text = JSON.stringify(events);
      expect(text).toContain('sky');
      expect(text).not.toMatch(/blue|DONE|message_stop/);
      expect(isCut).toBe(fault === 'cut');
      if (fault === 'malformed') expect(events.at(-1)).toBe('{"not": json');
      if (fault === 'error-event') expect(events.at(-1).error.message).toBe('scripted failure');
    },
  );

  test('a client that goes away is noticed, whatever the script waits for', async () => {
    const never = new Promise(() => {});
    for (const held of [
      { until: never },
      { hold: { after: 1, until: never } },
      { everyMs: 60_000 },
    ]) {
      provider.script(answering('The sky is blue.', held));
      const index = provider.requests.length;
      const client = new AbortController();
      const asked = post(path, { stream: true }, client.signal).then(eventsOf, () => 'gone');
      await provider.received(index + 1);

      client.abort();

      await asked;
      expect((await provider.ended(index)).endedBy).toBe('aborted');
    }
  });

  test('replies come in turn, the last one again and again', async () => {
    provider.script(inTurn({ text: 'one' }, { text: 'two' }));

    const answers: string[] = [];
    for (let n = 0; n < 3; n += 1) answers.push(await (await post(path, {})).text());

    expect(answers.map((text) => /one|two/.exec(text)?.[0])).toEqual(['one', 'two', 'two']);
  });
});

test('a script may call tools and answer with their results', async () => {
  provider.script(callingTools([{ name: 'weather', input: {} }], 'It rains.'));
  const path = '/v1/chat/completions';

  const [first] = (await jsonOf(await post(path, {}))).choices;
  const result = { role: 'tool', tool_call_id: first.message.tool_calls[0].id, content: 'rain' };
  const messages = [...question, first.message, result];
  const [second] = (await jsonOf(await post(path, { messages }))).choices;

  expect(second.message.content).toBe('It rains.');
  expect(lastRequest().toolResults).toEqual(['rain']);
});

test('any other path is not found', async () => {
  expect((await post('/v1/completions', {})).status).toBe(404);
});
