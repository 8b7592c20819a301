import { expect, test } from 'vitest';
import type { Message } from '../api/conversations.ts';
import type { JobListItem, JobStep } from '../api/jobs.ts';
import {
  type Entry,
  entriesOf,
  isBroken,
  needsSteps,
  turnsOf,
  withoutMisleadingTools,
} from './turns.ts';

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

function message(id: string, role: Message['role'], second = 0): Message {
  return {
    ...{ id, conversation_id: 'c', role, kind: 'message' },
    ...{ content: id, model: null, created_at: at(second) },
  } as const;
}

function job(id: string, second: number, status: JobListItem['status'] = 'completed'): JobListItem {
  return {
    ...{ job_id: id, conversation_id: 'c', agent_id: 'a', status, created_at: at(second) },
    ...{
      skill_category: 'agent',
      skill_name: 'run-task',
      skill_version: 'v1.0',
      parent_job_id: null,
    },
  };
}

function step(number: number, kind: JobStep['kind'], messageId: string | null, parent?: number) {
  return { step: number, kind, message_id: messageId, parent_step_id: parent ?? null } as JobStep;
}

const tree = (entries: readonly Entry[]): unknown[] =>
  entries.map(({ message: { id }, caused }) => (caused.length > 0 ? [id, tree(caused)] : id));

test('messages belong to a job that ran, although another one waited behind it', () => {
  const ran = (id: string, accepted: number, began: number, ended: number): JobListItem => ({
    ...job(id, accepted),
    started_at: at(began),
    finished_at: at(ended),
  });
  const messages = [
    message('q1', 'user', 1),
    message('a1', 'assistant', 4),
    message('q3', 'user', 5),
    message('a3', 'assistant', 6),
    message('q2', 'user', 7),
    message('a2', 'assistant', 8),
  ];
  // The third has interrupted the first, while the second waited.
  const jobs = [ran('three', 3, 5, 6), ran('two', 2, 7, 8), ran('one', 1, 1, 4)];

  const turns = turnsOf(messages, jobs, true);

  expect(turns.map(({ job: of, messages: own }) => [of?.job_id, own.map(({ id }) => id)])).toEqual([
    ['one', ['q1', 'a1']],
    ['three', ['q3', 'a3']],
    ['two', ['q2', 'a2']],
  ]);
});

test('messages belong to the last job that was accepted before them', () => {
  const messages = [
    message('q1', 'user', 1),
    message('q2', 'user', 5),
    message('a2', 'assistant', 6),
  ];

  const turns = turnsOf(messages, [job('second', 5), job('first', 1, 'failed')], true);

  expect(
    turns.map(({ job: of, messages: said }) => [of?.job_id, said.map(({ id }) => id)]),
  ).toEqual([
    ['first', ['q1']],
    ['second', ['q2', 'a2']],
  ]);
  expect(turns.map(isBroken)).toEqual([true, false]);
});

test('a failure at the end of a page is told on the next one, and only there', () => {
  const jobs = [job('second', 5), job('first', 1, 'failed')];

  const before = turnsOf([message('q1', 'user', 1)], jobs, false);
  const after = turnsOf([message('q2', 'user', 5)], jobs, true);

  expect(before.map(isBroken)).toEqual([false]);
  expect(after.map((turn) => [turn.job?.job_id, isBroken(turn)])).toEqual([
    ['first', true],
    ['second', false],
  ]);
});

test('a page that begins within a turn does not tell of the turn before', () => {
  const turns = turnsOf(
    [message('a2', 'assistant', 6)],
    [job('second', 5), job('first', 1, 'failed')],
    true,
  );

  expect(turns.map(({ job: of }) => of?.job_id)).toEqual(['second']);
});

test('a job that still runs has not failed', () => {
  const [turn] = turnsOf([message('q', 'user', 1)], [job('j', 1, 'active')], true);

  expect(turn && isBroken(turn)).toBe(false);
});

test('without steps, tools stand below the answer before them', () => {
  const messages = [
    message('q', 'user'),
    message('a', 'assistant'),
    ...[message('t', 'tool'), message('u', 'tool'), message('b', 'assistant')],
  ];

  expect(tree(entriesOf(messages, undefined))).toEqual(['q', ['a', ['t', 'u']], 'b']);
  expect(needsSteps({ job: undefined, messages, isWhole: true })).toBe(false);
});

test('tools of answers that were given at the same time stand below their own', () => {
  const messages = [message('a', 'assistant'), message('b', 'assistant')].concat(
    message('t', 'tool'),
    message('u', 'tool'),
  );
  const steps = [step(1, 'model', 'a'), step(2, 'model', 'b')].concat(
    step(3, 'tool', 'u', 2),
    step(4, 'tool', 't', 1),
  );

  const turn = { job: undefined, messages, isWhole: true };
  expect(needsSteps(turn)).toBe(true);
  expect(tree(entriesOf(withoutMisleadingTools(turn).messages, undefined))).toEqual(['a', 'b']);
  expect(tree(entriesOf(messages, steps))).toEqual([
    ['a', ['t']],
    ['b', ['u']],
  ]);
});

test('what a tool asked a model stands within the tool, and before it has ended below its caller', () => {
  const steps = [
    step(1, 'model', 'a'),
    step(2, 'tool', 't', 1),
    step(3, 'model', 'inner', 2),
    step(4, 'model', 'b'),
  ];
  const running = [message('a', 'assistant'), message('inner', 'assistant')];
  const ended = [...running, message('t', 'tool'), message('b', 'assistant')];

  expect(tree(entriesOf(running, steps))).toEqual([['a', ['inner']]]);
  expect(tree(entriesOf(ended, steps))).toEqual([['a', [['t', ['inner']]]], 'b']);
});
