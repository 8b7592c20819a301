/**
 * The providers of models in the environment, and the settings for a call of one. Those in `known` are known by name. Any
 * other provider has its address in `<NAME>_BASE_URL` and speaks OpenAI's chat protocol if `<NAME>_PROTOCOL` names no
 * other: Ollama, vLLM, LM Studio, a gateway. Such a variable may belong to another program, so a fault in it is reported
 * only to a call of that provider. No fault contains a value.
 */
import { baseUrlFault } from '../../kernel/base-url.ts';
import { ModelError } from './model.ts';
import type { Protocol } from './protocol.ts';
import { chat } from './protocols/chat.ts';
import { converse } from './protocols/converse.ts';
import { gemini } from './protocols/gemini.ts';
import { messages } from './protocols/messages.ts';
import { mistral } from './protocols/mistral.ts';
import { responses } from './protocols/responses.ts';

/** The settings of a provider; null for a setting that is not set. */
export interface ProviderSettings {
  readonly apiKey: string | null;
  /** The base of the protocol's paths, such as `https://host/v1`. */
  readonly baseUrl: string | null;
  /** The name of the protocol that it speaks; that of the provider's own address by default. */
  readonly protocol?: string | null | undefined;
  /** Whether the provider needs no key, even under a known name. */
  readonly isOpen?: boolean;
  /** Who has to correct the settings; the platform's operator by default. */
  readonly source?: SettingsSource;
  /** How much the operator allows with the platform's credential. */
  readonly limits?: MinuteLimits | undefined;
}

/** Calls and tokens a minute; null for any number. */
export interface MinuteLimits {
  readonly calls: number | null;
  readonly tokens: number | null;
}

/** The environment, or what is stored for an organization. */
export type SettingsSource = 'platform' | 'organization';

/** Everything that a call of a provider needs. */
export interface Access {
  readonly provider: string;
  readonly protocol: Protocol;
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly source: SettingsSource;
}

/** The providers in the environment. */
export interface EnvironmentProviders {
  /** By provider name, the first part of a model's name. */
  readonly settings: ReadonlyMap<string, ProviderSettings>;
  /** The faults in the variables of the providers that are known by name, one sentence each. */
  readonly faults: readonly string[];
}

interface KnownProvider {
  readonly protocol: Protocol;
  /** Null where each customer has an address. */
  readonly baseUrl: string | null;
  /** Its own addresses; others under its name are gateways and local servers, which all speak chat. Left out: any. */
  readonly own?: RegExp;
}

const known: Readonly<Record<string, KnownProvider>> = {
  openai: {
    protocol: responses,
    baseUrl: 'https://api.openai.com/v1',
    own: /^https:\/\/([a-z]+\.)?api\.openai\.com(\/|$)/,
  },
  anthropic: { protocol: messages, baseUrl: 'https://api.anthropic.com/v1' },
  gemini: { protocol: gemini, baseUrl: 'https://generativelanguage.googleapis.com/v1beta' },
  mistral: {
    protocol: mistral,
    baseUrl: 'https://api.mistral.ai/v1',
    own: /^https:\/\/api\.mistral\.ai(\/|$)/,
  },
  xai: {
    protocol: responses,
    baseUrl: 'https://api.x.ai/v1',
    own: /^https:\/\/([a-z0-9-]+\.)?api\.x\.ai(\/|$)/,
  },
  groq: { protocol: chat, baseUrl: 'https://api.groq.com/openai/v1' },
  azure: { protocol: responses, baseUrl: null },
  bedrock: { protocol: converse, baseUrl: null },
};
const byName = { chat, responses, messages, gemini, mistral, converse };
const protocols: ReadonlyMap<string, Protocol> = new Map(Object.entries(byName));
export type ProtocolName = keyof typeof byName;
export const protocolNames = Object.keys(byName) as ProtocolName[];

/** The providers that are known by name. */
export const knownProviders: readonly string[] = Object.keys(known);
/** Their names as their variables begin: `OPENAI_API_KEY`. */
export const knownVariables: readonly string[] = knownProviders.map((name) => name.toUpperCase());
/** The pattern of a provider's name, in models and in the paths of credentials. */
export const providerPattern = '[a-z][a-z0-9-]{0,62}';
const namedAddress = /^([A-Z][A-Z0-9_]{0,62})_BASE_URL$/;
const wellFormedModel = new RegExp(`^(${providerPattern})/(\\S.*)$`);

/**
 * Reads `<NAME>_API_KEY`, `<NAME>_BASE_URL`, `<NAME>_PROTOCOL` and the limits `<NAME>_CALLS_PER_MINUTE` and
 * `<NAME>_TOKENS_PER_MINUTE` of each known provider, and of each name with an address. A variable that is empty counts as
 * not set.
 */
export function providersFrom(
  environment: Readonly<Record<string, string | undefined>>,
): EnvironmentProviders {
  const settings = new Map<string, ProviderSettings>();
  const faults: string[] = [];
  const valueIn = (name: string): string | null => environment[name]?.trim() || null;
  const minuteLimit = (name: string, of: 'CALLS' | 'TOKENS'): number | null => {
    const text = valueIn(`${name}_${of}_PER_MINUTE`);
    if (text === null) return null;
    const limit = /^\d{1,12}$/.test(text) ? Number(text) : 0;
    if (limit > 0) return limit;
    faults.push(`${name}_${of}_PER_MINUTE=…: expected a whole number of at least 1`);
    return null;
  };
  const others = Object.keys(environment).flatMap((name) => namedAddress.exec(name)?.[1] ?? []);
  for (const name of new Set([...knownVariables, ...others.sort()])) {
    const [keyName, urlName] = [`${name}_API_KEY`, `${name}_BASE_URL`];
    const [apiKey, baseUrl] = [valueIn(keyName), valueIn(urlName)];
    const slug = name.toLowerCase().replaceAll('_', '-');
    const protocol = valueIn(`${name}_PROTOCOL`);
    const isKnown = Object.hasOwn(known, slug);
    if (baseUrl === null && (!isKnown || (apiKey === null && protocol === null))) continue;
    const limits = { calls: minuteLimit(name, 'CALLS'), tokens: minuteLimit(name, 'TOKENS') };
    settings.set(slug, {
      apiKey,
      baseUrl,
      ...(protocol !== null && { protocol }),
      ...((limits.calls ?? limits.tokens) !== null && { limits }),
    });
    if (!isKnown) continue;
    if (protocol !== null && !protocols.has(protocol)) {
      faults.push(`${name}_PROTOCOL=…: expected one of ${protocolNames.join(', ')}`);
    }
    if (baseUrl !== null && baseUrlFault(baseUrl) !== null) {
      faults.push(
        `${urlName}=…: expected an http or https url without credentials, query and fragment`,
      );
    }
    if (apiKey !== null && !fitsHeader(apiKey)) {
      faults.push(`${keyName}=…: expected a key of visible ASCII characters`);
    }
  }
  return { settings, faults };
}

/** The provider and the model's own name in `provider/model`. Throws a ModelError. */
export function partsOfModel(model: string): { provider: string; name: string } {
  const [, provider, name] = wellFormedModel.exec(model) ?? [];
  if (provider !== undefined && name !== undefined) return { provider, name };
  throw unusable(
    `The model ${JSON.stringify(model.slice(0, 200))} is not written as provider/model`,
  );
}

/** The access for a call. Throws a ModelError that says which setting is missing or wrong. */
export function accessTo(provider: string, settings: ProviderSettings | undefined): Access {
  const own = Object.hasOwn(known, provider) ? known[provider] : undefined;
  const source = settings?.source ?? 'platform';
  const baseUrl = settings?.baseUrl ?? own?.baseUrl;
  if (baseUrl == null) {
    throw unusable(
      source === 'organization'
        ? `The credentials stored for the organization do not say where the provider ${provider} is: store them with a base_url`
        : `${own === undefined ? `No provider ${provider} is known` : `The provider ${provider} has another address for each customer`}: set ${variable(provider, 'BASE_URL')}, or store credentials for the organization`,
    );
  }
  const urlFault = baseUrlFault(baseUrl);
  if (urlFault !== null) {
    throw unusable(
      `${variable(provider, 'BASE_URL')} is no http or https url that the provider ${provider} can be reached by: it ${urlFault}`,
    );
  }
  const apiKey = settings?.apiKey ?? null;
  if (apiKey === null && own !== undefined && settings?.isOpen !== true) {
    throw unusable(
      settings?.baseUrl == null
        ? `There are no credentials for the provider ${provider}: ${howToSetKey({ provider, source })}`
        : `There is no key for the provider ${provider}: set ${variable(provider, 'API_KEY')} (any value where the server asks for none), or store credentials for the organization`,
    );
  }
  if (apiKey !== null && !fitsHeader(apiKey)) {
    throw unusable(
      `The credentials for the provider ${provider} are no key of visible ASCII characters: ${howToSetKey({ provider, source })}`,
    );
  }
  const protocol = protocolOf(provider, settings);
  return { provider, protocol, apiKey, baseUrl: addressOf(protocol, baseUrl), source };
}

/** The protocol for a call of a provider. Throws a ModelError where it is none that there is. */
function protocolOf(provider: string, settings: ProviderSettings | undefined): Protocol {
  const name = settings?.protocol;
  if (name != null) {
    const protocol = protocols.get(name);
    if (protocol !== undefined) return protocol;
    throw unusable(`${variable(provider, 'PROTOCOL')} is none of ${protocolNames.join(', ')}`);
  }
  const address = settings?.baseUrl ?? null;
  const own = Object.hasOwn(known, provider) ? known[provider] : undefined;
  const isElsewhere = address !== null && own?.own?.test(address) === false;
  return own === undefined || isElsewhere ? chat : own.protocol;
}

/** Whether a model is called by chat completions. Throws a ModelError. */
export function speaksChat(model: string, settings: ProviderSettings | undefined): boolean {
  return protocolOf(partsOfModel(model).provider, settings) === chat;
}

/** Whether a model is called by a protocol that carries PDF. Throws a ModelError. */
export function speaksPdf(model: string, settings: ProviderSettings | undefined): boolean {
  const { name } = protocolOf(partsOfModel(model).provider, settings);
  return name === 'responses' || name === 'messages' || name === 'gemini';
}

/** Why a provider makes no vectors; null for one that may. */
export function embeddingsFault(provider: string): string | null {
  if (provider === 'gemini') {
    return 'the provider gemini makes them by another protocol: set GOOGLE_BASE_URL';
  }
  const hasNone = provider === 'anthropic' || provider === 'bedrock';
  return hasNone ? `the provider ${provider} has no models for embeddings` : null;
}

function unusable(message: string): ModelError {
  return new ModelError('credentials', message);
}

/** How to set the key, as the end of a sentence. */
export function howToSetKey({ provider, source }: Pick<Access, 'provider' | 'source'>): string {
  if (source === 'organization') return 'replace the credentials stored for the organization';
  return `set ${variable(provider, 'API_KEY')}, or store credentials for the organization`;
}

function variable(provider: string, what: 'API_KEY' | 'BASE_URL' | 'PROTOCOL'): string {
  return `${provider.toUpperCase().replaceAll('-', '_')}_${what}`;
}

/** Anthropic's own clients take the address without `/v1`, others with it: both are accepted. */
function addressOf(protocol: Protocol, baseUrl: string): string {
  const plain = baseUrl.replace(/\/+$/, '');
  return protocol !== messages || /\/v\d+$/.test(plain) ? plain : `${plain}/v1`;
}

function fitsHeader(key: string): boolean {
  return /^[\x21-\x7e]+$/.test(key);
}
