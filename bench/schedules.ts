/**
 * Ticks: very many schedules that are due in one minute, and how long after its beginning the last of
 * them has fired. The schedules are recorded directly, copies of one that the API made.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { newId } from '../src/kernel/ids.ts';
import { waitFor } from '../test/support/wait-for.ts';
import { type Figure, round } from './figures.ts';
import { startServer, temporaryDirectory } from './server.ts';

type Row = Readonly<Record<string, SQLInputValue>>;

const minuteMs = 60_000;
/** For recording the schedules and for the start, before their minute begins. */
const leadMs = 10_000;
const firedDeadlineMs = 60_000;

/** Measures `count` schedules of one minute; takes up to a minute more than they do. */
export async function measureTicks(count: number): Promise<Figure[]> {
  const dataDir = temporaryDirectory();
  try {
    const slot = Math.ceil((Date.now() + leadMs) / minuteMs) * minuteMs;
    await createOne(dataDir, cronAt(slot));
    copyIt(dataDir, count - 1);
    const firedMs = await fire(dataDir, slot, count);
    return [
      {
        name: `${count} schedules of one minute: all fired`,
        value: firedMs / 1000,
        shown: `${round(firedMs / 1000)} s`,
        ...{ floor: 5, goal: 2, unit: 's', better: 'less' },
      },
    ];
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** An expression that matches this minute, and then not for a year. */
function cronAt(slot: number): string {
  const at = new Date(slot);
  const day = `${at.getUTCDate()} ${at.getUTCMonth() + 1}`;
  return `${at.getUTCMinutes()} ${at.getUTCHours()} ${day} *`;
}

async function createOne(dataDir: string, cron: string): Promise<void> {
  const server = await startServer('ours', dataDir);
  try {
    const response = await fetch(`${server.url}/api/scheduled-jobs`, {
      method: 'POST',
      headers: server.headers,
      body: JSON.stringify({
        agent_id: 'default',
        skill_category: 'util',
        skill_name: 'echo',
        cron_expression: cron,
        input: { text: 'The minute has come.' },
      }),
    });
    if (response.status !== 201) throw new Error(`No schedule: ${await response.text()}`);
  } finally {
    await server.stop();
  }
}

function copyIt(dataDir: string, count: number): void {
  const database = new DatabaseSync(join(dataDir, 'skillwright.db'));
  database.exec('BEGIN');
  const copyJob = copierOf(database, 'scheduled_jobs');
  const copyLastRun = copierOf(database, 'scheduled_job_last_runs');
  for (let i = 0; i < count; i += 1) {
    const id = newId();
    // The key alone has to differ: it is what no two may share.
    copyJob({ id, cron_key: `copy ${i}` });
    copyLastRun({ scheduled_job_id: id });
  }
  database.exec('COMMIT');
  database.close();
}

/** Inserts the table's only row again, with other values where it is given some. */
function copierOf(database: DatabaseSync, table: string) {
  const pattern = database.prepare(`SELECT * FROM ${table}`).get() as Row;
  const columns = Object.keys(pattern);
  const marks = columns.map(() => '?').join();
  const insert = database.prepare(`INSERT INTO ${table} (${columns.join()}) VALUES (${marks})`);
  return (values: Row) => {
    const row = { ...pattern, ...values };
    insert.run(...columns.map((column) => row[column] as SQLInputValue));
  };
}

/** Milliseconds from the beginning of the slot until each schedule has its run. */
async function fire(dataDir: string, slot: number, count: number): Promise<number> {
  const server = await startServer('ours', dataDir);
  const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
  const fired = store.prepare("SELECT count(*) AS n FROM scheduled_runs WHERE outcome = 'fired'");
  try {
    if (Date.now() > slot) throw new Error('The minute began before the server was ready.');
    await pause(slot - Date.now());
    await waitFor(() => fired.get()?.['n'] === count, {
      describe: () => `${count} schedules fire; ${fired.get()?.['n']} did`,
      deadlineMs: firedDeadlineMs,
      everyMs: 20,
    });
    return Date.now() - slot;
  } finally {
    store.close();
    await server.stop();
  }
}
