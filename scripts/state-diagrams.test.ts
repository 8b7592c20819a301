/** The state diagrams in the documentation show what the code's transition tables say, no more and no less. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { jobTransitions } from '../src/core/jobs/states.ts';
import { scheduledJobTransitions } from '../src/platform/schedules/states.ts';
import { deliveryTransitions, webhookTransitions } from '../src/platform/webhooks/states.ts';

type Transitions = Readonly<Record<string, readonly string[]>>;

const machines: [name: string, page: string, heading: string, transitions: Transitions][] = [
  ['job', 'docs/api.md', 'States of a job', jobTransitions],
  ['scheduled job', 'docs/schedules.md', 'States of a scheduled job', scheduledJobTransitions],
  ['webhook', 'docs/webhooks.md', 'States of a webhook', webhookTransitions],
  ['delivery', 'docs/webhooks.md', 'States of a delivery', deliveryTransitions],
];

describe.each(machines)('the diagram of a %s', (_name, page, heading, transitions) => {
  const arrows = arrowsUnder(page, heading);

  test('has every transition of the code, and no other', () => {
    const inCode = Object.entries(transitions).flatMap(([from, to]) =>
      to.map((state) => `${from} --> ${state}`),
    );
    const inDiagram = arrows.filter((arrow) => !arrow.includes('[*]'));
    expect(inDiagram.toSorted()).toEqual(inCode.toSorted());
  });

  test('ends where the code ends', () => {
    const final = Object.keys(transitions).filter((state) => transitions[state]?.length === 0);
    const inDiagram = arrows.filter((arrow) => arrow.endsWith('--> [*]'));
    expect(inDiagram.toSorted()).toEqual(final.map((state) => `${state} --> [*]`).toSorted());
  });

  test('begins somewhere that the code knows', () => {
    const beginnings = arrows.filter((arrow) => arrow.startsWith('[*]'));
    expect(beginnings).not.toEqual([]);
    for (const arrow of beginnings) expect(transitions).toHaveProperty(arrow.slice(8));
  });
});

/** The arrows of the first state diagram after a heading, without their labels. */
function arrowsUnder(page: string, heading: string): string[] {
  const text = readFileSync(join(import.meta.dirname, '..', page), 'utf8');
  const section = new RegExp(`^#+ ${heading}$`, 'm').exec(text);
  if (section === null) throw new Error(`${page} has no heading "${heading}"`);
  const diagram = /```mermaid\nstateDiagram-v2\n([^`]*)```/.exec(text.slice(section.index));
  if (diagram === null) throw new Error(`${page} has no state diagram under "${heading}"`);
  const lines = (diagram[1] ?? '').split('\n').filter((line) => line.includes('-->'));
  return lines.map((line) => (line.split(':')[0] ?? '').trim());
}
