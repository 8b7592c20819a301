import { describe, expect, test } from 'vitest';
import { account, deliveriesAmiss, nothingAmiss, type RecordedJob } from './accounts.ts';
import { faultJournal, reportOf } from './report.ts';

function job(id: string, fields: Partial<RecordedJob> = {}): RecordedJob {
  return {
    id,
    status: 'completed',
    epoch: 1,
    trigger_type: 'api',
    created_at: 1_000,
    finished_at: 1_500,
    error: null,
    completed_events: 1,
    failed_events: 0,
    user_messages: 1,
    assistant_messages: 1,
    ...fields,
  };
}

describe('an account', () => {
  test('of jobs that were each recorded once has nothing amiss', () => {
    const jobs = [job('a'), job('b', { finished_at: 4_000 })];
    const effects = ['begin a', 'end a', 'begin b', 'end b'].map((line) => {
      const [word = '', jobId = ''] = line.split(' ');
      return { word, jobId };
    });

    expect(account({ accepted: ['a', 'b'], jobs, effects })).toEqual({
      ...nothingAmiss,
      accepted: 2,
      recorded: 2,
      repeated: 0,
      longestDelayMs: 3_000,
    });
  });

  test.each<[string, Partial<RecordedJob>, object]>([
    ['one that has not ended', { status: 'active', completed_events: 0 }, { unended: ['a'] }],
    ['one with two ends', { completed_events: 2 }, { doubled: ['a'] }],
    ['one that both completed and failed', { failed_events: 1 }, { doubled: ['a'] }],
    ['one that goes on after its end was told', { status: 'queued' }, { doubled: ['a'] }],
    ['one with two answers', { assistant_messages: 2 }, { doubled: ['a'] }],
    ['one with two questions', { user_messages: 2 }, { doubled: ['a'] }],
    ['one without its event', { completed_events: 0 }, { untold: ['a'] }],
    ['one without its answer', { assistant_messages: 0 }, { untold: ['a'] }],
    [
      'a failure without its event',
      { status: 'failed', completed_events: 0, assistant_messages: 0 },
      { untold: ['a'] },
    ],
  ])('finds %s', (_what, fields, found) => {
    const made = account({ accepted: ['a', 'b'], jobs: [job('a', fields), job('b')] });

    expect(made).toMatchObject({ recorded: 1, ...found });
  });

  test('finds lost jobs, and ends without an event', () => {
    const made = account({ accepted: ['a', 'b'], jobs: [job('b'), job('c')] });

    expect(made).toMatchObject({ accepted: 2, recorded: 1, lost: ['a'], unknown: ['c'] });
  });

  test('names what failed, which is recorded all the same', () => {
    const failed = job('a', {
      status: 'failed',
      error: 'worker_lost',
      completed_events: 0,
      failed_events: 1,
      assistant_messages: 0,
    });

    expect(account({ accepted: ['a'], jobs: [failed] })).toMatchObject({
      recorded: 1,
      failed: ['a failed: worker_lost'],
    });
  });

  test('tells a run that was claimed again from a run without a claim', () => {
    const twice = ['begin', 'end', 'begin', 'end'].map((word) => ({ word, jobId: 'a' }));

    const claimed = account({ accepted: ['a'], jobs: [job('a', { epoch: 2 })], effects: twice });
    const unclaimed = account({ accepted: ['a'], jobs: [job('a')], effects: twice });

    expect(claimed).toMatchObject({ runUnclaimed: [], repeated: 1 });
    expect(unclaimed).toMatchObject({ runUnclaimed: ['a'] });
  });

  test('is about jobs that came by the API', () => {
    const jobs = [job('a'), job('b', { trigger_type: 'scheduled' })];

    expect(account({ accepted: ['a'], jobs })).toMatchObject({ unknown: [], recorded: 1 });
  });
});

describe('deliveries', () => {
  const told = (job_id: string, id: string, event = 'skill.completed') => ({
    json: { id, event, data: { job_id } },
  });

  test('may come twice, under the id of their event', () => {
    expect(deliveriesAmiss([told('a', '1'), told('a', '1'), told('b', '2')], ['a', 'b'])).toEqual(
      [],
    );
  });

  test('are amiss when there is none, one too many, or one of a job that did not complete', () => {
    const received = [told('b', '1'), told('b', '2'), told('c', '3')];

    expect(deliveriesAmiss(received, ['a', 'b'])).toEqual([
      'a in 0 events',
      'b in 2 events',
      'c has not completed',
    ]);
  });
});

test('a report counts the faults and shows the account', () => {
  const journal = faultJournal();
  for (const fault of ['worker killed', 'api killed', 'worker killed']) journal.did(fault);

  const report = reportOf({
    seconds: 60,
    journal,
    account: account({ accepted: ['a'], jobs: [job('a')] }),
    more: { 'requests answered 503': 3 },
  });

  expect(report.split('\n')).toEqual([
    '| | |',
    '| --- | ---: |',
    '| seconds under load | 60 |',
    '| faults done | 3 |',
    '| – api killed | 1 |',
    '| – worker killed | 2 |',
    '| jobs accepted | 1 |',
    '| recorded, each once | 1 |',
    '| lost | 0 |',
    '| doubled | 0 |',
    '| failed | 0 |',
    '| run more than once to the end | 0 |',
    '| longest delay from accept to end | 0.5 s |',
    '| requests answered 503 | 3 |',
  ]);
});
