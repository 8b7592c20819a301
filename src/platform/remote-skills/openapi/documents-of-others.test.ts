/** The documents that `@readme/oas-examples` collects of real APIs, in each version of OpenAPI. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toolFile } from '../../../../scripts/tools.ts';
import { areToolsHere } from '../../../../test/support/tools.ts';
import { checkSchema } from '../../../kernel/json-schema.ts';
import { readDocument } from './read-document.ts';

const here = await areToolsHere('scripts/tools/checks');
const examples = toolFile('scripts/tools/checks', '@readme/oas-examples');

function read(file: string) {
  const choice = { operations: null, credentials: null, documentUrl: null };
  const text = readFileSync(join(examples, file), 'utf8');
  return readDocument({ text, ...choice, baseUrl: 'https://api.example.com' });
}

describe.skipIf(!here)('documents of others', () => {
  test('are read whole, with schemas that can be used', () => {
    // One of them has webhooks alone.
    const files = ['2.0', '3.0', '3.1'].flatMap((version) =>
      readdirSync(join(examples, version, 'json'))
        .filter((name) => name.endsWith('.json') && name !== 'webhooks.json')
        .map((name) => join(version, 'json', name)),
    );
    expect(files.length).toBeGreaterThan(50);
    for (const file of files) {
      const { operations, leftOut } = read(file);
      expect([file, leftOut]).toEqual([file, []]);
      expect(operations.length).toBeGreaterThan(0);
      const names = operations.map(({ skillName }) => skillName);
      expect(new Set(names).size).toBe(names.length);
      for (const { input, output } of operations.slice(0, 5)) {
        for (const schema of [input, output ?? {}]) expect(() => checkSchema(schema)).not.toThrow();
      }
    }
  });

  test('say the same as JSON and as YAML', () => {
    const asJson = read('3.0/json/petstore.json');
    const asYaml = read('3.0/yaml/petstore.yaml');
    expect(asYaml.operations).toEqual(asJson.operations);
  });
});
