/** Pictures and PDF in messages of the user: the blocks of each protocol. */
import { describe, expect, test } from 'vitest';
import { AnswerSoFar } from '../answer.ts';
import type { ModelCall, UserMessage } from '../model.ts';
import { chat } from './chat.ts';
import { converse } from './converse.ts';
import { gemini } from './gemini.ts';
import { messages } from './messages.ts';
import { responses } from './responses.ts';

const picture = { name: 'a.png', mediaType: 'image/png', base64: 'cGljdHVyZQ==' };
const paper = { name: 'a.pdf', mediaType: 'application/pdf', base64: 'cGFwZXI=' };
const asked = (contents: UserMessage['contents']): ModelCall => ({
  model: 'any/model',
  settings: undefined,
  system: '',
  messages: [{ role: 'user', text: 'What is it?', ...(contents && { contents }) }],
  tools: [],
  maxOutputTokens: 100,
  signal: new AbortController().signal,
  onText() {},
});
const bodyOf = (protocol: typeof chat, contents?: UserMessage['contents']) =>
  protocol.bodyOf(asked(contents), 'model');

test('chat completions take pictures as data urls, and plain text where there are none', () => {
  expect(bodyOf(chat, [picture])['messages']).toEqual([
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: 'data:image/png;base64,cGljdHVyZQ==' } },
        { type: 'text', text: 'What is it?' },
      ],
    },
  ]);
  expect(bodyOf(chat)['messages']).toEqual([{ role: 'user', content: 'What is it?' }]);
});

test('responses take pictures and PDF', () => {
  expect(bodyOf(responses, [picture, paper])['input']).toEqual([
    {
      role: 'user',
      content: [
        {
          type: 'input_image',
          image_url: 'data:image/png;base64,cGljdHVyZQ==',
          detail: 'auto',
        },
        {
          type: 'input_file',
          filename: 'a.pdf',
          file_data: 'data:application/pdf;base64,cGFwZXI=',
        },
        { type: 'input_text', text: 'What is it?' },
      ],
    },
  ]);
  expect(bodyOf(responses)['input']).toEqual([{ role: 'user', content: 'What is it?' }]);
});

test('messages take pictures and PDF, before the text', () => {
  const source = (media_type: string, data: string) => ({ type: 'base64', media_type, data });

  expect(bodyOf(messages, [picture, paper])['messages']).toEqual([
    {
      role: 'user',
      content: [
        { type: 'image', source: source('image/png', 'cGljdHVyZQ==') },
        {
          type: 'document',
          source: source('application/pdf', 'cGFwZXI='),
          title: 'a.pdf',
        },
        { type: 'text', text: 'What is it?' },
      ],
    },
  ]);
});

test('Gemini takes both as data', () => {
  expect(bodyOf(gemini, [picture, paper])['contents']).toEqual([
    {
      role: 'user',
      parts: [
        { inlineData: { mimeType: 'image/png', data: 'cGljdHVyZQ==' } },
        { inlineData: { mimeType: 'application/pdf', data: 'cGFwZXI=' } },
        { text: 'What is it?' },
      ],
    },
  ]);
});

test('Converse takes pictures', () => {
  expect(bodyOf(converse, [picture])['messages']).toEqual([
    {
      role: 'user',
      content: [
        { image: { format: 'png', source: { bytes: 'cGljdHVyZQ==' } } },
        { text: 'What is it?' },
      ],
    },
  ]);
});

describe('pictures that a model has made', () => {
  /** The pictures of an answer of these events. */
  function picturesOf(protocol: typeof chat, events: readonly Record<string, unknown>[]) {
    const answer = new AnswerSoFar(() => {});
    const reader = protocol.readerFor(answer);
    for (const event of events) reader.take(event);
    reader.end();
    expect(reader.state.isBegun).toBe(true);
    return answer.whole('any/model', 'stop').pictures;
  }

  test('are read of Gemini, without those of its thoughts', () => {
    const part = (data: string, more = {}) => ({
      candidates: [
        { content: { parts: [{ inlineData: { mimeType: 'image/png', data }, ...more }] } },
      ],
    });
    const events = [part('b2xk', { thought: true }), part('bmV3')];

    expect(picturesOf(gemini, events)).toEqual(['bmV3']);
  });

  test('are read of responses, once though the whole answer has them again', () => {
    const item = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'bmV3' };
    const events = [
      { type: 'response.output_item.added', output_index: 0, item: { ...item, result: null } },
      { type: 'response.image_generation_call.partial_image', partial_image_b64: 'cGFydA==' },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { output: [item] } },
    ];

    expect(picturesOf(responses, events)).toEqual(['bmV3']);
    const document = { object: 'response', status: 'completed', output: [item] };
    expect(picturesOf(responses, responses.eventsOf(document))).toEqual(['bmV3']);
  });

  test('are read of chat completions of gateways', () => {
    const image = (url: string) => ({ type: 'image_url', image_url: { url } });
    const delta = { images: [image('data:image/png;base64,bmV3'), image('https://elsewhere')] };

    expect(picturesOf(chat, [{ choices: [{ delta }] }])).toEqual(['bmV3']);
  });

  test('are bounded in number and size', () => {
    const few = new AnswerSoFar(() => {});
    for (let i = 0; i < 8; i++) few.takePicture(`${i}`);
    const small = new AnswerSoFar(() => {});
    small.takePicture('a'.repeat(20 * 1024 * 1024));

    expect(() => few.takePicture('9')).toThrow('8 pictures');
    expect(() => small.takePicture('b'.repeat(5 * 1024 * 1024))).toThrow('characters of pictures');
  });
});
