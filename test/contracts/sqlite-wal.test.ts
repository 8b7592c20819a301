/** A start on a damaged or shortened log (WAL) of SQLite says what is missing; one after a crash says nothing. */
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openSqlite, sqliteFile } from '../../src/adapters/database/sqlite.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { migrateSqlite } from '../support/shared-servers.ts';
import { dataDirectory } from '../support/staged.ts';

const rows = 40;
const walHeader = 32;
const frame = 4_096 + 24;

/** The directory of a process that was killed after so many commits; `damage` is done to its files. */
async function crashed(damage: (file: string) => void): Promise<string> {
  const [from, to] = [dataDirectory(), dataDirectory()];
  await migrateSqlite(from);
  const database = await openSqlite(from, createLogger('silent'));
  for (let i = 0; i < rows; i++) {
    await database.write((tx) => tx.insert('organizations', [{ id: `o-${i}`, created_at: i }]));
  }
  for (const suffix of ['', '-wal', '-shm']) {
    copyFileSync(sqliteFile(from) + suffix, sqliteFile(to) + suffix);
  }
  await database.close();
  damage(sqliteFile(to));
  return to;
}

/** The rows that a start finds, and the errors that it logs. */
async function started(directory: string) {
  const lines: string[] = [];
  const log = createLogger('error', { write: (line: string) => lines.push(line) });
  const database = await openSqlite(directory, log);
  const close = () => database.close();
  onTestFinished(close);
  const found = await database.read.kysely.selectFrom('organizations').select('id').execute();
  return { found: found.length, lines: lines.map((line) => JSON.parse(line)), close };
}

function overwrite(file: string, at: number): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, Buffer.from('damaged!'), 0, 8, at);
  closeSync(fd);
}

const withoutIndex = (damage: (file: string) => void) => (file: string) => {
  rmSync(`${file}-shm`);
  damage(file);
};
const middleOf = (wal: string) =>
  walHeader + Math.floor((statSync(wal).size - walHeader) / frame / 2) * frame;

test.each<[string, (file: string) => void]>([
  ['that is whole', () => {}],
  ['that is whole, without its index', withoutIndex(() => {})],
  [
    'that ends with a part of a transaction',
    (file) => writeFileSync(`${file}-wal`, 'x'.repeat(6_000), { flag: 'a' }),
  ],
])('a log %s loses nothing and is no line', async (_which, damage) => {
  const { found, lines } = await started(await crashed(damage));

  expect(found).toBe(rows);
  expect(lines).toEqual([]);
});

test('the last transaction, which a power failure may have left half on disk, is no loss', async () => {
  const directory = await crashed(
    withoutIndex((file) => overwrite(`${file}-wal`, statSync(`${file}-wal`).size - 100)),
  );

  const { found, lines } = await started(directory);

  expect(found).toBe(rows - 1);
  expect(lines).toEqual([]);
});

test.each<[string, (file: string) => void, string]>([
  [
    'that was cut in a frame',
    (file) => truncateSync(`${file}-wal`, middleOf(`${file}-wal`) + 7),
    'the WAL ends in the middle of a frame',
  ],
  [
    'that was cut between frames',
    (file) => truncateSync(`${file}-wal`, middleOf(`${file}-wal`)),
    'a frame of the WAL is damaged, or the WAL was shortened',
  ],
  [
    'with a damaged frame',
    (file) => overwrite(`${file}-wal`, middleOf(`${file}-wal`) + 500),
    'a frame of the WAL is damaged, or the WAL was shortened',
  ],
  [
    'with a damaged frame, without its index',
    withoutIndex((file) => overwrite(`${file}-wal`, middleOf(`${file}-wal`) + 500)),
    'a frame of the WAL is damaged, or the WAL was shortened',
  ],
  [
    'with a damaged header',
    (file) => overwrite(`${file}-wal`, 16),
    'the header of the WAL is damaged',
  ],
  [
    'with a damaged header, without its index',
    withoutIndex((file) => overwrite(`${file}-wal`, 0)),
    'the header of the WAL is damaged',
  ],
  ['that was emptied', (file) => truncateSync(`${file}-wal`, 0), 'the WAL is missing or empty'],
  ['that was removed', (file) => rmSync(`${file}-wal`), 'the WAL is missing or empty'],
])('a log %s is reported once, with what is missing', async (_which, damage, reason) => {
  let bytes = 0;
  const directory = await crashed((file) => {
    damage(file);
    bytes = existsSync(`${file}-wal`) ? statSync(`${file}-wal`).size : 0;
  });
  const hasIndex = existsSync(`${sqliteFile(directory)}-shm`);

  const { found, lines, close } = await started(directory);

  expect(found).toBeLessThan(rows);
  expect(lines).toEqual([
    expect.objectContaining({ reason, wal_bytes: bytes, quick_check: expect.any(String) }),
  ]);
  const [line] = lines;
  expect(line.msg).toContain('jobs that were accepted');
  expect(line.lost_frames).toEqual(hasIndex ? expect.any(Number) : null);
  if (hasIndex) expect(line.lost_frames).toBeGreaterThanOrEqual(rows - found);
  expect(line.ignored_bytes).toBeLessThanOrEqual(bytes);
  // The damaged log is kept, so that the operator can examine it.
  expect(line.copy === null ? 0 : statSync(line.copy).size).toBe(bytes);
  await close();
  expect((await started(directory)).lines).toEqual([]);
});

test('of each damaged log a copy is kept, up to ten', async () => {
  const truncate = (file: string) => truncateSync(`${file}-wal`, middleOf(`${file}-wal`));
  const place = await crashed(truncate);
  const wal = `${sqliteFile(place)}-wal`;
  const copies: unknown[] = [];
  for (let i = 0; i < 11; i++) {
    if (i > 0) {
      const again = await crashed(truncate);
      for (const suffix of ['', '-wal', '-shm']) {
        rmSync(sqliteFile(place) + suffix, { force: true });
        copyFileSync(sqliteFile(again) + suffix, sqliteFile(place) + suffix);
      }
    }
    const { lines, close } = await started(place);
    copies.push(lines[0].copy);
    if (i === 10) {
      expect(lines[0].no_copy).toContain('move them away');
      expect(lines[0].msg).toContain('No copy of the log was kept');
    }
    await close();
  }

  const numbered = Array.from({ length: 9 }, (_, i) => `${wal}.damaged-${i + 2}`);
  expect(copies).toEqual([`${wal}.damaged`, ...numbered, null]);
});

test('a log that a backup reads is not emptied, and counts as not emptied', async () => {
  const directory = dataDirectory();
  await migrateSqlite(directory);
  const database = await openSqlite(directory, createLogger('silent'));
  onTestFinished(() => database.close());
  await database.write((tx) => tx.insert('organizations', [{ id: 'o', created_at: 1 }]));
  const backup = new DatabaseSync(sqliteFile(directory), { readOnly: true });
  backup.exec('BEGIN');
  backup.prepare('SELECT count(*) FROM organizations').get();
  await database.write((tx) => tx.insert('organizations', [{ id: 'p', created_at: 1 }]));

  expect(await database.emptyLog()).toBe(false);
  backup.close();
  expect(await database.emptyLog()).toBe(true);
  expect(statSync(`${sqliteFile(directory)}-wal`).size).toBe(0);
});

test.each<[string, (file: string) => void]>([
  ['is no database', (file) => overwrite(file, 0)],
  [
    'is damaged',
    (file) => writeFileSync(file, Buffer.alloc(statSync(file).size - 4_096), { flag: 'r+' }),
  ],
])('a file that %s stops the start with what to do', async (_how, damage) => {
  const directory = await crashed((file) => {
    for (const suffix of ['-wal', '-shm']) rmSync(file + suffix);
    damage(file);
  });

  await expect(openSqlite(directory, createLogger('silent'))).rejects.toThrow(
    /is damaged \(.+\): keep a copy of .+, and restore a backup into it/,
  );
});

test('another process that reads the database leaves the index of its log as it is', async () => {
  const directory = dataDirectory();
  await migrateSqlite(directory);
  const database = await openSqlite(directory, createLogger('silent'));
  onTestFinished(() => database.close());
  await database.write((tx) => tx.insert('organizations', [{ id: 'o', created_at: 1 }]));

  // The bytes are read there: a file that this process closed would end its own locks.
  const code = `
    const { readFileSync } = require('node:fs');
    const file = process.argv[1];
    const header = () => readFileSync(file + '-shm').toString('hex', 0, 96);
    const before = header();
    const other = new (require('node:sqlite').DatabaseSync)(file, { readOnly: true });
    const { n } = other.prepare('SELECT count(*) AS n FROM organizations').get();
    console.log(JSON.stringify({ n, isSame: header() === before }));`;
  const said = execFileSync(process.execPath, ['-e', code, sqliteFile(directory)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });

  expect(JSON.parse(said)).toEqual({ n: 1, isSame: true });
});
