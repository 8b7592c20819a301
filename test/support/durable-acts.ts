/** Random acts for runs that wait, and what a run that plays them has to return. */
import type { Act, Moment } from '../fixtures/skills/durable/play.ts';
import { oneOf, randomInteger } from './random.ts';

/** An event that a run waits for, to be sent from outside; its data are `{ of: key }`. */
export interface Wanted {
  readonly event: string;
  readonly key: string;
}

let made = 0;
const newName = (kind: string) => `${kind}-${++made}`;

/** Some acts of a run; those of a child run are simpler, because no event reaches it before it is accepted. */
export function randomActs(depth = 0): Act[] {
  return Array.from({ length: randomInteger(1, depth === 0 ? 6 : 3) }, () => randomAct(depth));
}

function randomAct(depth: number): Act {
  const kinds = ['step', 'step', 'map', 'sleep', 'approve'] as const;
  const kind = oneOf([
    ...kinds,
    ...(depth === 0 ? (['event', 'run', 'parallel'] as const) : []),
  ] as const);
  const name = newName(kind);
  switch (kind) {
    case 'step':
      return { step: name, ms: oneOf([0, 0, randomInteger(1, 60)]) };
    case 'map':
      return { map: name, items: randomInteger(1, 8) };
    case 'sleep':
      return { sleep: name, ms: randomInteger(0, 600) };
    case 'approve':
      return { approve: name };
    case 'event':
      return { event: name, key: newName('key') };
    case 'run':
      return { run: name, acts: randomActs(depth + 1) };
    default:
      return { parallel: [randomActs(depth + 1), randomActs(depth + 1)] };
  }
}

/** What a run returns that plays the acts, when everything asked is approved. */
export function resultOf(acts: readonly Act[]): unknown[] {
  return acts.map((act) => {
    if ('step' in act) return `${act.step} is done`;
    if ('map' in act) return Array.from({ length: act.items }, (_, i) => `${act.map}#${i} is done`);
    if ('event' in act) return { of: act.key };
    if ('approve' in act) return true;
    if ('run' in act) return resultOf(act.acts);
    if ('parallel' in act) return act.parallel.map(resultOf);
    return null;
  });
}

/** The events that a run waits for. */
export function wantedBy(acts: readonly Act[]): Wanted[] {
  return acts.flatMap((act) => {
    if ('event' in act) return [{ event: act.event, key: act.key }];
    if ('parallel' in act) return act.parallel.flatMap(wantedBy);
    return [];
  });
}

/** How many questions a run asks, with its child runs. */
export function questionsOf(acts: readonly Act[]): number {
  return acts.reduce((sum, act) => {
    if ('approve' in act) return sum + 1;
    if ('run' in act) return sum + questionsOf(act.acts);
    if ('parallel' in act) return sum + act.parallel.map(questionsOf).reduce((a, b) => a + b, 0);
    return sum;
  }, 0);
}

const everyKind = (): Act[] => [
  { step: newName('first') },
  { sleep: newName('nap'), ms: 300 },
  { map: newName('items'), items: 4 },
  { event: newName('event'), key: newName('key') },
  { approve: newName('question') },
  { run: newName('child'), acts: [{ sleep: newName('nap'), ms: 100 }, { step: newName('inner') }] },
  { step: newName('last') },
];

/** For each boundary a run of all kinds of acts, in which the platform is killed there. */
export function boundaries(): { boundary: string; acts: Act[] }[] {
  const moments: Moment[] = ['before', 'inside', 'after'];
  const kinds = everyKind();
  const ofOne = kinds.flatMap((act, i) =>
    moments
      .filter((moment) => moment !== 'inside' || 'step' in act || 'map' in act)
      .map((moment) => ({
        boundary: `${moment} ${Object.keys(act)[0]} ${i}`,
        acts: everyKind().map((one, at) => (at === i ? { ...one, kill: moment } : one)),
      })),
  );
  // The row of the wait is there, and the run is still loaded.
  const beside: Act[] = [
    {
      parallel: [
        [{ sleep: newName('nap'), ms: 2_000 }],
        [{ approve: newName('question') }],
        [{ step: newName('slow'), ms: 200, kill: 'inside' }],
      ],
    },
    { step: newName('last') },
  ];
  return [...ofOne, { boundary: 'after the row of a wait', acts: beside }];
}
