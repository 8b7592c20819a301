import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TSchema } from 'typebox';
import { describe, expect, test } from 'vitest';
import { type EventType, events, eventTypes } from './events.ts';

const documentation = readFileSync(
  join(import.meta.dirname, '../..', '..', 'docs', 'webhooks.md'),
  'utf8',
);

describe('the table of events', () => {
  test.each(eventTypes)('the documentation has the row of %s', (type) => {
    expect(documentation.split('\n')).toContain(rowOf(type));
  });

  test('the documentation has no other rows', () => {
    const [, table = ''] = documentation.split('| event | when | `data` |\n| --- | --- | --- |\n');
    const [rows = ''] = table.split('\n\n');
    expect(rows.split('\n')).toHaveLength(eventTypes.length);
  });

  test.each(eventTypes)('the sample of %s has all fields of its data', (type) => {
    const { data, sample } = events[type];
    expect(Object.keys(sample)).toEqual(Object.keys(data.properties));
  });
});

function rowOf(type: EventType): string {
  const { when, data } = events[type];
  const fields = Object.entries<TSchema>(data.properties).map(fieldOf);
  return `| \`${type}\` | ${when} | ${fields.join(', ')} |`;
}

function fieldOf([name, schema]: [string, TSchema]): string {
  if ('properties' in schema) {
    return `\`${name}\` \`{${Object.keys(schema.properties as object).join(', ')}}\``;
  }
  return 'anyOf' in schema ? `\`${name}\` or null` : `\`${name}\``;
}
