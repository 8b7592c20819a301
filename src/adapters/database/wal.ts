/**
 * Reads the headers of SQLite's write-ahead log (WAL) and of its wal-index (`-shm`), without SQLite.
 * Formats: https://www.sqlite.org/fileformat2.html#walformat and https://www.sqlite.org/walformat.html
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

export const walHeaderBytes = 32;
const frameHeaderBytes = 24;
/** Both copies of the header of a wal-index, and how many frames are in the database already. */
const indexBytes = 100;
const walFormat = 3_007_000;
/** Headers of frames that are read, 200 bytes of memory and some microseconds each: those of a WAL of 8 GB. */
const framesMax = 2_000_000;

/** The header of a wal-index: what the processes before knew of the WAL. */
interface WalIndex {
  /** The generation of the WAL that it is about. */
  readonly salts: string;
  /** Frames up to the last commit. */
  readonly frames: number;
  /** How many of them are in the database. */
  readonly copied: number;
}

/** A WAL and its index, as they were found before SQLite opened them. */
export interface FoundWal {
  readonly bytes: number;
  /** Null when the header of the WAL is no header. */
  readonly salts: string | null;
  readonly frameBytes: number;
  /** The last frame of each transaction of this generation, counted from 1, whatever its checksum. */
  readonly commits: readonly number[];
  readonly index: WalIndex | null;
}

/**
 * Reads the WAL and the wal-index of a database that this process does not have open: closing a file ends the locks
 * that SQLite has on it in the same process.
 */
export function findWal(file: string): FoundWal {
  const index = readWalIndex(file);
  const none = { bytes: 0, salts: null, frameBytes: 0, commits: [], index };
  return withFile(`${file}-wal`, none, (fd) => {
    const bytes = fstatSync(fd).size;
    const header = Buffer.alloc(walHeaderBytes);
    const isWhole = readSync(fd, header, 0, walHeaderBytes, 0) === walHeaderBytes;
    if (!isWhole || !isWalHeader(header)) return { ...none, bytes };
    const frameBytes = frameHeaderBytes + header.readUInt32BE(8);
    const salts = header.toString('hex', 16, 24);
    return { bytes, salts, frameBytes, commits: commitsIn(fd, bytes, frameBytes, salts), index };
  });
}

function readWalIndex(file: string): WalIndex | null {
  return withFile(`${file}-shm`, null, (fd) => {
    const header = Buffer.alloc(indexBytes);
    if (readSync(fd, header, 0, indexBytes, 0) < indexBytes) return null;
    // Two equal copies, or a process was ended while it wrote them.
    if (!header.subarray(0, 48).equals(header.subarray(48, 96))) return null;
    const word = wordsOf(header);
    if (word(0) !== walFormat || header[12] !== 1) return null;
    const [s1, s2] = checksumOf(word, 10);
    if (s1 !== word(10) || s2 !== word(11)) return null;
    return { salts: header.toString('hex', 32, 40), frames: word(4), copied: word(24) };
  });
}

function isWalHeader(header: Buffer): boolean {
  const magic = header.readUInt32BE(0);
  if (magic !== 0x377f0682 && magic !== 0x377f0683) return false;
  if (header.readUInt32BE(4) !== walFormat) return false;
  const pageBytes = header.readUInt32BE(8);
  if (pageBytes < 512 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0) return false;
  // The magic number says in which order of bytes the checksums were made.
  const word = magic === 0x377f0683 ? bigEndianWords(header) : littleEndianWords(header);
  const [s1, s2] = checksumOf(word, 6);
  return s1 === header.readUInt32BE(24) && s2 === header.readUInt32BE(28);
}

/** Reads the headers of all frames. Frames of an earlier generation are left over from before the WAL began anew. */
function commitsIn(fd: number, bytes: number, frameBytes: number, salts: string): number[] {
  const commits: number[] = [];
  const count = Math.min(framesMax, Math.floor((bytes - walHeaderBytes) / frameBytes));
  const header = Buffer.alloc(frameHeaderBytes);
  for (let frame = 1; frame <= count; frame++) {
    const at = walHeaderBytes + (frame - 1) * frameBytes;
    if (readSync(fd, header, 0, frameHeaderBytes, at) < frameHeaderBytes) break;
    if (header.toString('hex', 8, 16) !== salts) continue;
    if (header.readUInt32BE(4) > 0) commits.push(frame);
  }
  return commits;
}

type Word = (index: number) => number;
const littleEndianWords =
  (bytes: Buffer): Word =>
  (index) =>
    bytes.readUInt32LE(index * 4);
const bigEndianWords =
  (bytes: Buffer): Word =>
  (index) =>
    bytes.readUInt32BE(index * 4);
/** A wal-index has the order of bytes of the machine; each that Node runs SQLite on has this one. */
const wordsOf = littleEndianWords;

/** SQLite's checksum of the first words. */
function checksumOf(word: Word, words: number): [number, number] {
  let [s1, s2] = [0, 0];
  for (let i = 0; i < words; i += 2) {
    s1 = (s1 + word(i) + s2) >>> 0;
    s2 = (s2 + word(i + 1) + s1) >>> 0;
  }
  return [s1, s2];
}

/** Reads a file; `missing` where there is none. */
function withFile<T>(path: string, missing: T, read: (fd: number) => T): T {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return missing;
    throw error;
  }
  try {
    return read(fd);
  } finally {
    closeSync(fd);
  }
}
