import { expect, test } from 'vitest';
import { ModelError } from './model.ts';
import { accessTo, partsOfModel, providersFrom, speaksChat } from './providers.ts';

const read = (environment: Record<string, string>) => {
  const { settings, faults } = providersFrom(environment);
  return { settings: Object.fromEntries(settings), faults };
};

function failureOf(call: () => unknown): ModelError {
  try {
    call();
  } catch (error) {
    if (error instanceof ModelError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

test('OpenAI and Anthropic are found by their keys and by their base urls', () => {
  expect(
    read({
      OPENAI_API_KEY: ' sk-1\n',
      ANTHROPIC_API_KEY: 'sk-2',
      ANTHROPIC_BASE_URL: 'https://gateway.example/anthropic',
    }),
  ).toEqual({
    settings: {
      openai: { apiKey: 'sk-1', baseUrl: null },
      anthropic: { apiKey: 'sk-2', baseUrl: 'https://gateway.example/anthropic' },
    },
    faults: [],
  });
});

test('any other provider is found by its base url, with or without a key', () => {
  expect(
    read({
      OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1',
      MY_GATEWAY_2_BASE_URL: 'https://gateway.example/v1',
      MY_GATEWAY_2_API_KEY: 'k',
      COHERE_API_KEY: 'a key alone says nothing of where',
      lower_BASE_URL: 'http://127.0.0.1/v1',
      _BASE_URL: 'http://127.0.0.1/v1',
      EMPTY_BASE_URL: ' ',
      OPENAI_API_KEY: '',
    }),
  ).toEqual({
    settings: {
      ollama: { apiKey: null, baseUrl: 'http://127.0.0.1:11434/v1' },
      'my-gateway-2': { apiKey: 'k', baseUrl: 'https://gateway.example/v1' },
    },
    faults: [],
  });
});

const unusable = [
  'ftp://host/v1',
  'host/v1',
  '/app',
  'http://',
  'https://user:secret@host/v1',
  'https://host/v1?key=secret',
  'https://host/v1#secret',
  'https://ho st/v1',
  `https://host/${'x'.repeat(2_048)}`,
];

test.each(
  unusable.flatMap((baseUrl) => [
    ['OPENAI_BASE_URL', baseUrl],
    ['ANTHROPIC_BASE_URL', baseUrl],
  ]),
)('%s with the address %s is a fault that shows nothing of it', (name, baseUrl) => {
  const { faults } = read({ [name]: baseUrl });

  expect(faults).toEqual([
    `${name}=…: expected an http or https url without credentials, query and fragment`,
  ]);
});

test.each(unusable)(
  'any other variable may be %s, and does not define a usable provider',
  (baseUrl) => {
    const { settings, faults } = read({ NEXT_PUBLIC_BASE_URL: baseUrl, NEXT_PUBLIC_API_KEY: 'ü' });

    expect(faults).toEqual([]);
    const failure = failureOf(() => accessTo('next-public', settings['next-public']));
    expect(failure).toMatchObject({ fault: 'credentials' });
    expect(failure.message).toContain('NEXT_PUBLIC_BASE_URL is no http or https url');
    expect(failure.message).not.toMatch(/host|secret|app/);
  },
);

test('a key of another provider that no header can carry is reported to a call of that provider', () => {
  const { settings, faults } = read({ OLLAMA_BASE_URL: 'http://host/v1', OLLAMA_API_KEY: 'ü' });

  expect(faults).toEqual([]);
  const { message } = failureOf(() => accessTo('ollama', settings['ollama']));
  expect(message).toContain('set OLLAMA_API_KEY');
  expect(message).not.toContain('ü');
});

test('a key that no header can carry is a fault that does not show it', () => {
  const { faults } = read({ OPENAI_API_KEY: 'sk-secret\nsecond' });

  expect(faults).toEqual(['OPENAI_API_KEY=…: expected a key of visible ASCII characters']);
});

test('every fault is reported at once', () => {
  expect(
    read({ OPENAI_BASE_URL: 'a', ANTHROPIC_BASE_URL: 'b', OPENAI_API_KEY: 'ü' }).faults,
  ).toHaveLength(3);
});

test('a model is a provider and a name, which may have slashes', () => {
  expect(partsOfModel('my-gateway/org/model:7b')).toEqual({
    provider: 'my-gateway',
    name: 'org/model:7b',
  });
});

test.each([
  ['openai', 'https://api.openai.com/v1', 'responses'],
  ['anthropic', 'https://api.anthropic.com/v1', 'messages'],
])('%s has a default base url', (provider, baseUrl, protocol) => {
  const access = accessTo(provider, { apiKey: 'k', baseUrl: null });

  expect({ ...access, protocol: access.protocol.name }).toEqual({
    provider,
    protocol,
    baseUrl,
    apiKey: 'k',
    source: 'platform',
  });
});

test.each(['a'.repeat(63), 'a-1'])('a provider may have the name %s', (provider) => {
  expect(partsOfModel(`${provider}/x`).provider).toBe(provider);
  const variable = `${provider.toUpperCase().replace('-', '_')}_BASE_URL`;
  expect(Object.keys(read({ [variable]: 'http://host/v1' }).settings)).toEqual([provider]);
});

test.each(['a'.repeat(64), '1a', '-a', 'A'])('no provider has the name %s', (provider) => {
  expect(failureOf(() => partsOfModel(`${provider}/x`))).toMatchObject({ fault: 'credentials' });
  const variable = `${provider.toUpperCase().replace('-', '_')}_BASE_URL`;
  if (provider !== 'A') expect(read({ [variable]: 'http://host/v1' }).settings).toEqual({});
});

test.each<[string, string | null, string | null, string]>([
  ['openai', null, null, 'responses'],
  ['openai', 'https://eu.api.openai.com/v1', null, 'responses'],
  ['openai', 'https://gateway.example/v1', null, 'chat'],
  ['openai', 'https://api.openai.com.example/v1', null, 'chat'],
  ['openai', 'https://gateway.example/v1', 'responses', 'responses'],
  ['openai', null, 'chat', 'chat'],
  ['gemini', null, null, 'gemini'],
  ['mistral', null, null, 'mistral'],
  ['mistral', 'http://127.0.0.1:8000/v1', null, 'chat'],
  ['xai', null, null, 'responses'],
  ['xai', 'https://eu-west-1.api.x.ai/v1', null, 'responses'],
  ['xai', 'https://gateway.example/v1', null, 'chat'],
  ['groq', null, null, 'chat'],
  ['azure', 'https://my.openai.azure.com/openai/v1', null, 'responses'],
  ['bedrock', 'https://bedrock-runtime.eu-central-1.amazonaws.com', null, 'converse'],
  ['anthropic', 'https://gateway.example/v1', null, 'messages'],
  ['ollama', 'http://127.0.0.1:11434/v1', null, 'chat'],
  ['my-gateway', 'http://127.0.0.1:4000', 'messages', 'messages'],
])('%s at %s with the protocol %s speaks %s', (provider, baseUrl, protocol, expected) => {
  const settings = { apiKey: 'k', baseUrl, protocol };

  expect(accessTo(provider, settings).protocol.name).toBe(expected);
  expect(speaksChat(`${provider}/m`, settings)).toBe(expected === 'chat');
});

test('the protocol is in a variable of its own, and a fault of a known provider stops the start', () => {
  const environment = {
    OPENAI_PROTOCOL: 'chat',
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_PROTOCOL: 'grpc',
    VLLM_BASE_URL: 'http://host/v1',
    VLLM_PROTOCOL: 'responses',
    LOCAL_BASE_URL: 'http://host/v1',
    LOCAL_PROTOCOL: 'soap',
    HTTP_PROTOCOL: 'h2',
  };
  const { settings, faults } = read(environment);

  expect(settings).toMatchObject({
    openai: { apiKey: null, baseUrl: null, protocol: 'chat' },
    vllm: { protocol: 'responses' },
  });
  expect(settings).not.toHaveProperty('http');
  expect(faults).toEqual([
    'ANTHROPIC_PROTOCOL=…: expected one of chat, responses, messages, gemini, mistral, converse',
  ]);
  expect(failureOf(() => accessTo('local', settings['local'])).message).toBe(
    'LOCAL_PROTOCOL is none of chat, responses, messages, gemini, mistral, converse',
  );
});

test.each(['azure', 'bedrock'])('%s has another address for each customer', (provider) => {
  const { settings } = read({ [`${provider.toUpperCase()}_API_KEY`]: 'k' });

  expect(failureOf(() => accessTo(provider, settings[provider])).message).toBe(
    `The provider ${provider} has another address for each customer: set ${provider.toUpperCase()}_BASE_URL, or store credentials for the organization`,
  );
});
