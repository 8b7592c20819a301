import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { messageBody, messageHeaders } from './message.ts';

const event = {
  id: 'the-event',
  type: 'skill.completed',
  createdAt: Date.parse('2026-01-01T00:00:00.007Z'),
  agentId: 'default',
};

test('the body has the five fields of the specification, in their order, data as it was recorded', () => {
  const data = '{"result_summary":"Grüße 🏔️ \\/ <b>","n":1.0}';

  const body = messageBody({ ...event, data });

  expect(body).toBe(
    `{"id":"the-event","event":"skill.completed","timestamp":"2026-01-01T00:00:00.007Z","agent_id":"default","data":${data}}`,
  );
  expect(JSON.parse(body).data).toEqual({ result_summary: 'Grüße 🏔️ / <b>', n: 1 });
});

test.each(['a secret of ASCII', 'пароль-Grüße-🔑-long', 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'])(
  'the body has two signatures, ours and that of Standard Webhooks: %s',
  (secret) => {
    const body = messageBody({ ...event, data: '{"text":"Grüße 🏔️"}' });
    const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret;

    const headers = messageHeaders(
      { id: 'd1', event: event.type, body },
      secret,
      1_700_000_000_999,
    );

    expect(headers).toEqual({
      'content-type': 'application/json',
      'x-service-signature': createHmac('sha256', secret).update(body, 'utf8').digest('hex'),
      'x-service-event': 'skill.completed',
      'x-service-delivery': 'd1',
      'webhook-id': 'd1',
      'webhook-timestamp': '1700000000',
      'webhook-signature': `v1,${createHmac('sha256', key).update(`d1.1700000000.${body}`).digest('base64')}`,
    });
  },
);
