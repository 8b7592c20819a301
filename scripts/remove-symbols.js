/**
 * `node scripts/remove-symbols.js PROGRAM` removes the table of symbols from a program of Linux, a fifth of Node, which
 * only a debugger of C++ reads. Plain JavaScript, because npm runs it with an older Node (prepare.js), and instead of
 * `strip`, which knows the processor of its machine alone.
 *
 * What a process maps stays as it is; the table of sections after it is written anew, without those that are not mapped.
 * Leaves all but 64-bit little-endian ELF, which is x64 and arm64, as it is, and a program that would not run afterwards.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const machines = { x64: 62, arm64: 183 };
const symbolTable = 2;
/** Takes place in memory, not in the file. */
const noBits = 8;
const mapped = 2n;
const alignment = 8;

/** Entries of a table, of whose place, size of an entry and length the header says at these offsets. */
function entriesOf(program, placeAt, sizeAt, countAt) {
  const place = Number(program.readBigUInt64LE(placeAt));
  const size = program.readUInt16LE(sizeAt);
  return Array.from({ length: program.readUInt16LE(countAt) }, (_, at) =>
    program.subarray(place + at * size, place + (at + 1) * size),
  );
}

/** Where the part of the file ends whose offset the entry has there; its length is at 32 in entries of both tables. */
function endOf(entry, offsetAt) {
  return Number(entry.readBigUInt64LE(offsetAt) + entry.readBigUInt64LE(32));
}

/** Null where there are none, or where they cannot be removed. */
function withoutSymbols(program) {
  if (program.subarray(0, 6).toString('latin1') !== '\x7fELF\x02\x01') return null;
  const sections = entriesOf(program, 0x28, 0x3a, 0x3c);
  const names = sections[program.readUInt16LE(0x3e)];
  const typeOf = (section) => section.readUInt32LE(4);
  if (!names || !sections.some((section) => typeOf(section) === symbolTable)) return null;
  const isMapped = (section) => (section.readBigUInt64LE(8) & mapped) !== 0n;
  const kept = sections.slice(0, sections.findLastIndex(isMapped) + 1);
  // Sections name each other by number, so none between them may go.
  const isWhole = kept.slice(1).every(isMapped);
  if (!isWhole || kept.some((section) => section.readUInt32LE(40) >= kept.length)) return null;
  const end = Math.max(
    ...kept.filter((section) => typeOf(section) !== noBits).map((section) => endOf(section, 24)),
    ...entriesOf(program, 0x20, 0x36, 0x38).map((segment) => endOf(segment, 8)),
  );
  const text = program.subarray(Number(names.readBigUInt64LE(24)), endOf(names, 24));
  const padding = Buffer.alloc((alignment - ((end + text.length) % alignment)) % alignment);
  const moved = Buffer.from(names);
  moved.writeBigUInt64LE(BigInt(end), 24);
  const slim = Buffer.concat([program.subarray(0, end), text, padding, ...kept, moved]);
  slim.writeBigUInt64LE(BigInt(end + text.length + padding.length), 0x28);
  slim.writeUInt16LE(kept.length + 1, 0x3c);
  slim.writeUInt16LE(kept.length, 0x3e);
  return slim;
}

const [, , file] = process.argv;
const slim = withoutSymbols(readFileSync(file));
if (slim !== null) {
  const made = `${file}.${process.pid}`;
  try {
    writeFileSync(made, slim);
    chmodSync(made, 0o755);
    const isOwn = process.platform === 'linux' && slim.readUInt16LE(18) === machines[process.arch];
    const tried = isOwn ? spawnSync(made, ['-p', '1'], { timeout: 60_000 }) : { status: 0 };
    if (tried.status !== 0) throw new Error(`it does not run: ${tried.error ?? tried.stderr}`);
    renameSync(made, file);
  } catch (error) {
    console.error(`${file} keeps its symbols: ${error.message}`);
  } finally {
    rmSync(made, { force: true });
  }
}
