/**
 * Files of an organization: their rows, and the bytes that the rows name. Bytes are stored once for each digest. They are on
 * record before they are stored and until they are removed (`file_garbage`), so a crash leaves none behind; the totals
 * of the organization are locked by everything that adds or deletes files, so caps are exact and bytes in use stay.
 * Never holds a file in memory.
 */
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  type BlobSource,
  type Blobs,
  type BytePart,
  storageFault,
} from '../../adapters/blobs/blobs.ts';
import { removeStale, Spool, type Spooled, tooLarge } from '../../adapters/blobs/spool.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { type Clock, dayMs, timestamp } from '../../kernel/clock.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId, newId } from '../../kernel/ids.ts';
import type { Logger } from '../../kernel/log.ts';
import type { Config } from '../config/config.ts';
import type { Context } from '../context/context.ts';
import { checkedBytes } from './checked-bytes.ts';
import {
  addToTotals,
  amongInUse,
  blobKeyOf,
  type Deletion,
  deleteFiles,
  deleteGarbage,
  deleteUnused,
  dueGarbage,
  type FileFilters,
  type FileRow,
  type FileTotals,
  filesExpiring,
  filesOfUser,
  filesToDelete,
  findFetchedFile,
  findFile,
  findFiles,
  findSameFile,
  holdsClaim,
  insertBlob,
  insertFile,
  insertGarbage,
  keepBlob,
  listFiles,
  lockTotals,
  prolongFiles,
  readTotals,
  setTokens,
} from './files.store.ts';
import { keptUntil } from './named-files.ts';

export type { FileRow } from './files.store.ts';

const megabyte = 1024 * 1024;
/** For the storage of bytes, and for the commit after it, which ends before a purge removes them. */
const intentMs = 3_600_000;
const commitMs = 60_000;
/** How long before files expire the purge asks whether they are in use: repeatedly, because a job may resume another. */
const lookAheadMs = 600_000;
/** Files, or bytes of files, that are deleted at a time. */
const batchMax = 100;
const filesReadMax = 50;
/** Removals of bytes that fail one after the other, until the storage is asked no more. */
const faultsMax = 5;

/** Whose a new file is. */
export interface FileOwner {
  readonly organizationId: string;
  readonly userId: string | null;
  readonly jobId: string | null;
  /** Where it was fetched from. */
  readonly sourceUrl?: string;
  /** Whether a file of the job that has the same name and bytes is the file. */
  readonly isOnce?: boolean;
  /** Days that it is kept, instead of those of the settings. */
  readonly retentionDays?: number | undefined;
}

export type Expiring = Pick<FileRow, 'id' | 'organization_id' | 'expires_at' | 'retention_days'>;

export class Files {
  readonly #blobs: Blobs | null;
  readonly #spool: Spool | null;
  readonly #config: Config;
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;

  /** `blobs` is null where the processes share no storage. */
  constructor({ config, database, clock, log }: Context, blobs: Blobs | null) {
    this.#config = config;
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    this.#blobs = blobs;
    const [all, file] = [config.filesSpoolMaxMb * megabyte, this.bytesMax];
    const bounds = { file, all, organization: Math.max(file, all / 2) };
    this.#spool = blobs && new Spool(blobs.spoolDirectory, bounds);
  }

  /** Bytes of one file. */
  get bytesMax(): number {
    return this.#config.fileMaxMb * megabyte;
  }

  /** Throws unless the organization may have a file more, of `bytes` where they are known: before they are read. */
  async requireRoom(organizationId: string, bytes: number): Promise<void> {
    this.#requireBlobs();
    if (bytes > this.bytesMax) throw tooLarge(this.bytesMax);
    this.#requireFit(await readTotals(this.#database.read, organizationId), bytes);
  }

  /**
   * Keeps bytes as a file. Throws `413` for too many, `409` above the caps of the organization, and `503` where the spool is
   * full or the job whose file it would be is not claimed any more.
   */
  async create(owner: FileOwner, name: string, bytes: AsyncIterable<Uint8Array>): Promise<FileRow> {
    const blobs = this.#requireBlobs();
    const spool = this.#spool as Spool;
    return await spool.receive(owner.organizationId, bytes, name, (spooled) =>
      this.#keep(blobs, owner, name, spooled),
    );
  }

  async #keep(blobs: Blobs, owner: FileOwner, name: string, spooled: Spooled): Promise<FileRow> {
    const { organizationId } = owner;
    const { sha256, bytes, mediaType } = spooled;
    const now = this.#clock.now();
    const row = {
      id: newId(),
      organization_id: organizationId,
      name,
      media_type: mediaType,
      bytes,
      sha256,
      user_id: owner.userId,
      job_id: owner.jobId,
      source_url: owner.sourceUrl ?? null,
      retention_days: owner.retentionDays ?? null,
      tokens: null,
      created_at: now,
      expires_at: now + (owner.retentionDays ?? this.#config.fileRetentionDays) * dayMs,
    };
    const known = await blobKeyOf(this.#database.read, organizationId, sha256);
    if (known !== undefined) {
      // Storage that was restored from a backup may have lost them.
      const isLost = !(await blobs.has(known, bytes));
      if (isLost) await blobs.put(known, spooled);
      const kept = await this.#database.write((tx) =>
        this.#insert(tx, { ...row, blob_key: known }, owner),
      );
      if (kept !== null) return kept;
      // The last file of these bytes was deleted meanwhile.
      if (isLost) throw await this.#tooLate(row, known);
    }
    const stored = await this.#store(blobs, organizationId, spooled);
    const kept = await this.#database.write((tx) =>
      this.#insert(tx, { ...row, blob_key: stored }, owner),
    );
    if (kept !== null) return kept;
    throw await this.#tooLate(row, stored);
  }

  /** The refusal of a file whose bytes were stored too late: a purge removes them, unless other files have them. */
  async #tooLate(
    { organization_id, sha256 }: Pick<FileRow, 'organization_id' | 'sha256'>,
    key: string,
  ): Promise<PlatformError> {
    await this.#database.write(async (tx) => {
      await lockTotals(tx, organization_id);
      if ((await blobKeyOf(tx, organization_id, sha256)) === key) return;
      await insertGarbage(tx, [key], this.#clock.now());
    });
    return new PlatformError('service_unavailable', 'The file took too long to be stored', {
      retryAfter: 1,
    });
  }

  /** Stores bytes under a new key, which is garbage until a row names it. */
  async #store(blobs: Blobs, organizationId: string, source: BlobSource): Promise<string> {
    const key = `${organizationId}/${source.sha256}-${randomBytes(4).toString('hex')}`;
    const dueAt = this.#clock.now() + intentMs;
    await this.#database.write((tx) => insertGarbage(tx, [key], dueAt));
    await blobs.put(key, source);
    return key;
  }

  /**
   * Inserts a row whose bytes are stored; null where they may be removed already, or where the claim of its job has ended: an
   * erasure of the user may be done.
   */
  async #insert(
    tx: Transaction,
    row: FileRow,
    { isOnce = false }: FileOwner,
  ): Promise<FileRow | null> {
    const { organization_id: organizationId, bytes } = row;
    const totals = await lockTotals(tx, organizationId);
    if (row.job_id !== null && !(await holdsClaim(tx, row.job_id))) return null;
    // Bytes that were stored for it meanwhile stay garbage.
    const same = isOnce ? await findSameFile(tx, row) : undefined;
    if (same !== undefined) return same;
    this.#requireFit(totals, bytes);
    const known = await blobKeyOf(tx, organizationId, row.sha256);
    const kept = { ...row, blob_key: known ?? row.blob_key };
    if (known === undefined) {
      if (!(await keepBlob(tx, row.blob_key, this.#clock.now() + commitMs))) return null;
      await insertBlob(tx, kept);
    } else if (known !== row.blob_key) {
      // Another request was sooner to store the same bytes.
      await insertGarbage(tx, [row.blob_key], this.#clock.now());
    }
    await insertFile(tx, kept);
    await addToTotals(tx, organizationId, { files: 1, bytes });
    return kept;
  }

  #requireFit({ files, bytes }: FileTotals, more: number): void {
    const { filesMax, filesMaxMb } = this.#config;
    const refuse = (has: string, variable: string) =>
      new PlatformError(
        'conflict',
        `The organization has ${has}, which is as many as it may have (${variable}): delete files first`,
      );
    if (files >= filesMax) throw refuse(`${filesMax.toLocaleString('en-US')} files`, 'FILES_MAX');
    if (bytes + more > filesMaxMb * megabyte) {
      throw refuse(`${filesMaxMb.toLocaleString('en-US')} MiB of files`, 'FILES_MAX_MB');
    }
  }

  #requireBlobs(): Blobs {
    if (this.#blobs !== null) return this.#blobs;
    throw new PlatformError(
      'conflict',
      'This platform keeps no files: its processes share no storage. Set FILES_S3_URL',
    );
  }

  /** `404` where there is no such file, or it has expired. */
  async find(organizationId: string, id: string): Promise<FileRow> {
    const row = isId(id) ? await findFile(this.#database.read, organizationId, id) : undefined;
    if (row === undefined || row.expires_at <= this.#clock.now()) throw notFound('File');
    return row;
  }

  /**
   * The bytes of a file, or a part, which is kept longer for this use. The stream fails with `upstream_unavailable` unless they
   * are those of the row. The caller reads it or destroys it.
   */
  async open(row: FileRow, part?: BytePart): Promise<Readable> {
    await this.prolong(row);
    const bytes = await readChecked(this.#requireBlobs(), row, part);
    if (bytes !== null) return bytes;
    // Deleted meanwhile, or the storage has lost it.
    this.#log.warn({ file_id: row.id }, 'the bytes of a file are not in the storage');
    throw notFound('File');
  }

  list(organizationId: string, filters: FileFilters, page: PageAsked) {
    return listFiles(this.#database.read, organizationId, filters, page);
  }

  /** Deletes a file, whose bytes a purge removes; `404` where there is none. */
  async remove(organizationId: string, id: string): Promise<void> {
    await this.find(organizationId, id);
    await this.#deleteAll({ organizationId, id }, () => false);
  }

  /** Deletes files of a user until `isLate`; how many. Their bytes are garbage from now on. */
  eraseUser(organizationId: string, userId: string, isLate: () => boolean): Promise<number> {
    return this.#deleteAll({ organizationId, userId }, isLate);
  }

  eraseOfJobs(
    organizationId: string,
    jobIds: readonly string[],
    isLate: () => boolean,
  ): Promise<number> {
    return jobIds.length === 0
      ? Promise.resolve(0)
      : this.#deleteAll({ organizationId, jobIds }, isLate);
  }

  /** Deletes expired files, and bytes that no file names, whether the former succeeds or not. */
  async purge(): Promise<void> {
    const faults: unknown[] = [];
    await this.#deleteExpired().catch((error: unknown) => faults.push(error));
    while (this.#blobs !== null && faults.length < faultsMax) {
      const keys = await dueGarbage(this.#database.read, this.#clock.now(), batchMax);
      await this.#removeBytes(keys).catch((error: unknown) => faults.push(error));
      if (keys.length < batchMax) break;
    }
    if (faults.length > 0) throw faults[0];
  }

  /** Deletes expired files, but those of jobs that are not done with them, however long these wait. */
  async #deleteExpired(): Promise<void> {
    const { read } = this.#database;
    const now = this.#clock.now();
    for (let after = { expires_at: 0, id: '' }; ; ) {
      const page = await filesExpiring(read, after, now + lookAheadMs, filesReadMax);
      const last = page.at(-1);
      if (last === undefined) break;
      const inUse = await amongInUse(
        read,
        page.map(({ id }) => id),
      );
      for (const row of page) if (inUse.has(row.id)) await this.prolong(row);
      after = last;
    }
    await this.#deleteAll({ expiredAt: now }, () => false);
  }

  /**
   * Removes all bytes that no file of an organization names, but those that are being stored; false where it was late. Throws
   * where some stay.
   */
  async removeGarbage(organizationId: string, isLate: () => boolean): Promise<boolean> {
    for (;;) {
      // Also those whose removal has failed just now.
      const before = this.#clock.now() + commitMs;
      const keys = await dueGarbage(this.#database.read, before, batchMax, organizationId);
      if (keys.length === 0 || this.#blobs === null) return true;
      if (isLate()) return false;
      await this.#removeBytes(keys);
    }
  }

  /** Removes what an earlier process on this machine was receiving when it was ended. */
  async removeStale(): Promise<void> {
    if (this.#spool !== null) await removeStale(this.#spool.directory);
  }

  async #deleteAll(which: Deletion, isLate: () => boolean): Promise<number> {
    let deleted = 0;
    for (;;) {
      const found = await filesToDelete(this.#database.read, which, batchMax);
      for (const [organizationId, rows] of Map.groupBy(found, (row) => row.organization_id)) {
        const ids = rows.map(({ id }) => id);
        deleted += await this.#database.write((tx) => this.#delete(tx, organizationId, ids));
      }
      if (found.length < batchMax || isLate()) return deleted;
    }
  }

  async #delete(tx: Transaction, organizationId: string, ids: readonly string[]): Promise<number> {
    await lockTotals(tx, organizationId);
    const rows = await deleteFiles(tx, organizationId, ids);
    const named = rows.map(({ blob_key }) => blob_key);
    const keys = await deleteUnused(tx, organizationId, named);
    if (keys.length > 0) await insertGarbage(tx, keys, this.#clock.now());
    const bytes = rows.reduce((sum, row) => sum + Number(row.bytes), 0);
    await addToTotals(tx, organizationId, { files: -rows.length, bytes: -bytes });
    return rows.length;
  }

  /**
   * Removes bytes that are garbage; throws where some stay. These stay on record behind what is due, so that they keep no others,
   * and a later purge tries them again. Storage that refuses several in a row is asked no more.
   */
  async #removeBytes(keys: readonly string[]): Promise<void> {
    const blobs = this.#blobs;
    if (keys.length === 0 || blobs === null) return;
    const gone: string[] = [];
    const failed: string[] = [];
    let fault: unknown;
    let inRow = 0;
    for (const key of keys) {
      try {
        await blobs.remove(key);
        gone.push(key);
        inRow = 0;
      } catch (error) {
        failed.push(key);
        fault ??= error;
        inRow += 1;
        if (inRow >= faultsMax) break;
      }
    }
    // No later than what `keepBlob` may still keep: bytes whose removal has failed may be gone.
    const dueAt = this.#clock.now() + commitMs;
    await this.#database.write(async (tx) => {
      if (gone.length > 0) await deleteGarbage(tx, gone);
      if (failed.length > 0) await insertGarbage(tx, failed, dueAt);
    });
    if (failed.length > 0) throw fault;
  }

  /** All files of a user with their bytes, by id; null for bytes that were deleted meanwhile, or that the storage has lost. */
  async *ofUser(
    organizationId: string,
    userId: string,
  ): AsyncGenerator<{ readonly file: FileRow; readonly bytes: Readable | null }> {
    for (let after = ''; ; ) {
      const user = { organizationId, userId };
      const files = await filesOfUser(this.#database.read, user, after, filesReadMax);
      for (const file of files) {
        yield { file, bytes: this.#blobs && (await readChecked(this.#blobs, file)) };
      }
      const last = files.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  }

  /**
   * The files of a request that names them, in its order: each of the organization itself or of the user. Throws
   * `404` for any other, so that no user learns of files of others.
   */
  async ofRequest(
    organizationId: string,
    userId: string | null,
    ids: readonly string[],
  ): Promise<FileRow[]> {
    const usable = await this.usable(organizationId, userId, ids);
    return ids.map((id) => {
      const row = usable.get(id);
      if (row === undefined) throw notFound(`File ${id}`);
      return row;
    });
  }

  /** Those of the files that a request for the user may use, by id; for any user where it is undefined. */
  async usable(
    organizationId: string,
    userId: string | null | undefined,
    ids: readonly string[],
  ): Promise<Map<string, FileRow>> {
    const wellFormed = ids.filter(isId);
    if (wellFormed.length === 0) return new Map();
    const rows = await findFiles(this.#database.read, organizationId, wellFormed);
    const now = this.#clock.now();
    const isUsable = ({ user_id, expires_at }: FileRow) =>
      expires_at > now && (userId === undefined || user_id === null || user_id === userId);
    return new Map(rows.filter(isUsable).map((row) => [row.id, row]));
  }

  /** The file that was fetched from a url for one of the jobs. */
  fetchedBy(jobIds: readonly string[], url: string): Promise<FileRow | undefined> {
    return findFetchedFile(this.#database.read, jobIds, url);
  }

  /** Keeps a file that is used for as long as a new one: to the day, or a tenth of that. */
  async prolong(row: Expiring): Promise<void> {
    const until = keptUntil(row, this.#clock.now(), this.#config.fileRetentionDays);
    if (until === null) return;
    const { id, organization_id } = row;
    await this.#database.write((tx) => prolongFiles(tx, organization_id, [id], until));
  }

  /** Keeps how many tokens a document counts in a call. */
  async setTokens({ organization_id, id }: FileRow, tokens: number): Promise<void> {
    await this.#database.write((tx) => setTokens(tx, organization_id, id, tokens));
  }
}

/** A file as skills return it and tools tell of it. */
export const fileReference = (row: FileRow) => ({
  type: 'file' as const,
  id: row.id,
  name: row.name,
  media_type: row.media_type,
  bytes: Number(row.bytes),
  sha256: row.sha256,
});

/** A file as the API shows it. */
export const fileView = (row: FileRow) => ({
  id: row.id,
  name: row.name,
  media_type: row.media_type,
  bytes: Number(row.bytes),
  sha256: row.sha256,
  user_id: row.user_id,
  job_id: row.job_id,
  retention_days: row.retention_days,
  created_at: timestamp(row.created_at),
  expires_at: timestamp(row.expires_at),
});

/** The bytes of a file, or a part, checked against its row; null where the storage has none. */
async function readChecked(
  blobs: Blobs,
  { blob_key, bytes, sha256 }: FileRow,
  part?: BytePart,
): Promise<Readable | null> {
  const found = await blobs.read(blob_key, part).catch((error: unknown) => {
    throw error instanceof PlatformError ? error : storageFault(`${error}`, error);
  });
  if (found === null) return null;
  return part === undefined
    ? checkedBytes(found, { bytes: Number(bytes), sha256 })
    : checkedBytes(found, { bytes: part.end - part.start + 1, sha256: null });
}
