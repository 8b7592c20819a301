/** What a run of the fault tests has to show: the table that is printed, and kept in the documents. */
import type { Account } from './accounts.ts';

/** Faults as they were done, counted by name. */
export interface FaultJournal {
  did(fault: string): void;
  readonly counts: ReadonlyMap<string, number>;
}

export function faultJournal(): FaultJournal {
  const counts = new Map<string, number>();
  return {
    counts,
    did: (fault) => void counts.set(fault, (counts.get(fault) ?? 0) + 1),
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
  const faults = [...journal.counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
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
