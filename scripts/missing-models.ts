/**
 * `node scripts/missing-models.ts [provider/model …]`: which abilities and prices of models are missing, both in
 * `src/adapters/models/model-table.ts` and in `MODEL_ABILITIES` and `MODEL_PRICES`. Without names it asks the providers
 * of the environment for their models, and without providers it takes those that have a price.
 */
import { KnownModels } from '../src/adapters/models/known-models.ts';
import type { Abilities } from '../src/adapters/models/model-table.ts';
import { priceLines, tableDate } from '../src/adapters/models/model-table.ts';
import { Prices } from '../src/adapters/models/prices.ts';
import { accessTo } from '../src/adapters/models/providers.ts';
import { examineConfig } from '../src/core/config/config.ts';

const dayMs = 86_400_000;
/** Days after which the table has to be compared with the providers again. */
const ageMax = 60;
const requestMs = 30_000;
/** Models that write no texts. */
const others =
  /embedding|whisper|tts|dall-e|image|audio|realtime|moderation|transcribe|sora|babbage|davinci|search|instruct/;

const asked: readonly (keyof Abilities)[] = [
  'contextTokens',
  'outputTokens',
  'efforts',
  'temperature',
  'images',
  'schema',
];

/** What is not known of each model; those of which everything is known are left out. */
export function missingOf(
  models: readonly string[],
  known: KnownModels,
  prices: Prices,
  now: number,
): Map<string, string[]> {
  const missing = new Map<string, string[]>();
  for (const model of models) {
    const abilities = known.of(model);
    const names: string[] = asked.filter((name) => abilities[name] === undefined);
    if (prices.at(model, now) === undefined) names.push('price');
    if (names.length > 0) missing.set(model, names);
  }
  return missing;
}

interface Listed {
  readonly data?: readonly { readonly id: string }[];
  /** Of Gemini. */
  readonly models?: readonly { readonly name: string }[];
}

function namesIn({ data = [], models = [] }: Listed): string[] {
  return [...data.map(({ id }) => id), ...models.map(({ name }) => name.replace('models/', ''))];
}

/** The models that the providers list. */
async function listedModels(providers: ReadonlyMap<string, unknown>): Promise<string[]> {
  const models: string[] = [];
  for (const provider of providers.keys()) {
    const { baseUrl, apiKey, protocol } = accessTo(provider, config.providers.get(provider));
    const response = await fetch(`${baseUrl}/models?limit=1000`, {
      headers: protocol.headersOf(apiKey),
      signal: AbortSignal.timeout(requestMs),
    });
    if (!response.ok) throw new Error(`${provider} answered ${response.status}`);
    const names = namesIn((await response.json()) as Listed);
    models.push(...names.map((name) => `${provider}/${name}`).filter((name) => !others.test(name)));
  }
  return models;
}

const { config } = examineConfig(process.env);

if (import.meta.main) {
  const now = Date.now();
  const priced = [...new Set(priceLines.map(([model]) => model))];
  const given = process.argv.slice(2);
  const listed = given.length > 0 ? given : await listedModels(config.providers);
  const known = new KnownModels(config.modelAbilities);
  const models = listed.length > 0 ? listed : priced;
  const missing = missingOf(models, known, new Prices(config.modelPrices), now);
  for (const [model, names] of missing) console.log(`${model}: ${names.join(', ')}`);
  console.log(`${models.length} models, of ${missing.size} of which something is not known`);
  const age = Math.floor((now - Date.parse(tableDate)) / dayMs);
  if (age > ageMax) console.log(`The table is ${age} days old: compare it with the providers`);
  process.exitCode = missing.size > 0 || age > ageMax ? 1 : 0;
}
