/** Pictures and PDF in messages of the user: the blocks of each protocol. */
import { expect, test } from 'vitest';
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
