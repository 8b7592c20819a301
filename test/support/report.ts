/** What a run of the fault tests has to show: the table that is printed, and kept in the documents. */
import type { Account } from './accounts.ts';

/** Faults as they were done. */
export interface FaultJournal {
  did(fault: string): void;
  /** How many there were of each. */
  counts(): Map<string, number>;
  /** In the order of their ends, each with its second, to find the cause of a failure. */
  timeline(): string;
}

export function faultJournal(): FaultJournal {
  const began = performance.now();
  const done: { readonly fault: string; readonly at: number }[] = [];
  return {
    did: (fault) => void done.push({ fault, at: performance.now() - began }),
    counts: () =>
      new Map(
        [...Map.groupBy(done, ({ fault }) => fault)].map(([fault, all]) => [fault, all.length]),
      ),
    timeline: () => done.map(({ fault, at }) => `${(at / 1000).toFixed(1)} s  ${fault}`).join('\n'),
  };
}

/** The report as a table in Markdown. */
export function reportOf(parts: {
  readonly seconds: number;
  readonly journal: FaultJournal;
  readonly account: Account;
  /** Further lines, each a name and a figure. */
  readonly more?: Readonly<Record<string, string | number>>;
}): string {
  const { seconds, journal, account, more = {} } = parts;
  const faults = [...journal.counts()].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const total = faults.reduce((sum, [, n]) => sum + n, 0);
  const rows: [string, string | number][] = [
    ['seconds under load', seconds],
    ['faults done', total],
    ...faults.map(([fault, n]): [string, number] => [`– ${fault}`, n]),
    ['jobs accepted', account.accepted],
    ['recorded, each once', account.recorded],
    ['lost', account.lost.length],
    ['doubled', account.doubled.length],
    ['failed', account.failed.length],
    ['run more than once to the end', account.repeated],
    ['longest delay from accept to end', `${(account.longestDelayMs / 1000).toFixed(1)} s`],
    ...Object.entries(more),
  ];
  return [
    '| | |',
    '| --- | ---: |',
    ...rows.map(([name, figure]) => `| ${name} | ${figure} |`),
  ].join('\n');
}
