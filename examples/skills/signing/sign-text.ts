/**
 * A skill with settings, to copy: it signs a text with a key that each organization sets for itself, on the page of
 * the skill in the console or with `PUT /api/skills/:id/config`. Without the key its runs do not start.
 */
import { createHmac } from 'node:crypto';
import { defineSkill } from 'skillwright';

export default defineSkill({
  category: 'signing',
  name: 'sign-text',
  version: 'v1.0',
  displayName: 'Sign text',
  description: 'Signs a text with the key of the organization, as HMAC-SHA256.',
  parameters: {
    type: 'object',
    required: ['text'],
    additionalProperties: false,
    properties: {
      text: { type: 'string', minLength: 1, maxLength: 100_000, description: 'What to sign.' },
    },
  },
  output: {
    type: 'object',
    required: ['signature', 'key_name'],
    additionalProperties: false,
    properties: {
      signature: { type: 'string', description: 'The signature, in hex.' },
      key_name: { type: 'string', description: 'The name of the key that signed it.' },
    },
  },
  config: {
    SIGNING_KEY: {
      secret: true,
      description: 'The key that texts are signed with: at least 16 characters.',
    },
    SIGNING_KEY_NAME: {
      description: 'How receivers know the key.',
      default: 'first',
    },
  },
  examples: [{ input: { text: 'Pay 12 euros to Ada.' } }],
  run({ text }, { config }) {
    return {
      signature: createHmac('sha256', config.SIGNING_KEY).update(text).digest('hex'),
      key_name: config.SIGNING_KEY_NAME,
    };
  },
});
