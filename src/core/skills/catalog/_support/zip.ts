/**
 * Unpacks a ZIP archive safely. Promises to unpack at most the given number of bytes, also when the archive
 * claims another size. A library that reads the archive afterwards finds the same entries, because an ambiguous
 * archive is refused.
 */

/** The unpacked entries of an archive by name. */
export type ZipEntries = ReadonlyMap<string, Buffer>;

interface Header {
  readonly name: string;
  readonly flags: number;
  readonly method: number;
  readonly packedBytes: number;
  /** Where the entry's own header begins. */
  readonly start: number;
  /** Where the next header of the directory begins. */
  readonly next: number;
}

const endSignature = Buffer.from('PK\x05\x06', 'latin1');
const directorySignature = 0x02014b50;
const entrySignature = 0x04034b50;
const entriesMax = 5_000;
const stored = 0;
const deflated = 8;

/** Unpacks all entries. Throws an Error that says what is wrong. */
export function unzip(archive: Buffer, bytesMax: number): ZipEntries {
  const entries = new Map<string, Buffer>();
  let room = bytesMax;
  for (const header of directory(archive)) {
    const bytes = unpacked(archive, header, room);
    room -= bytes.length;
    entries.set(header.name, bytes);
  }
  return entries;
}

function* directory(archive: Buffer): Generator<Header> {
  const end = archive.lastIndexOf(endSignature);
  if (end === -1 || end + 22 > archive.length) throw broken('it has no end');
  const count = archive.readUInt16LE(end + 10);
  const size = archive.readUInt32LE(end + 12);
  let position = archive.readUInt32LE(end + 16);
  // Bytes between the parts would let two readers find different entries.
  if (position + size !== end || count > entriesMax) throw broken('its directory is odd');
  for (let i = 0; i < count; i++) {
    const header = headerAt(archive, position);
    yield header;
    position = header.next;
  }
  if (position !== end) throw broken('its directory is odd');
}

function headerAt(archive: Buffer, position: number): Header {
  if (position + 46 > archive.length || archive.readUInt32LE(position) !== directorySignature) {
    throw broken('its directory is odd');
  }
  const nameEnd = position + 46 + archive.readUInt16LE(position + 28);
  return {
    name: archive.toString('utf8', position + 46, nameEnd),
    flags: archive.readUInt16LE(position + 8),
    method: archive.readUInt16LE(position + 10),
    packedBytes: archive.readUInt32LE(position + 20),
    start: archive.readUInt32LE(position + 42),
    next: nameEnd + archive.readUInt16LE(position + 30) + archive.readUInt16LE(position + 32),
  };
}

function unpacked(archive: Buffer, header: Header, bytesMax: number): Buffer {
  const { start } = header;
  if ((header.flags & 1) === 1) {
    throw new Error('The document is encrypted');
  }
  if (start + 30 > archive.length || archive.readUInt32LE(start) !== entrySignature) {
    throw broken('an entry is not where it should be');
  }
  const nameBytes = archive.readUInt16LE(start + 26);
  const begin = start + 30 + nameBytes + archive.readUInt16LE(start + 28);
  const packed = archive.subarray(begin, begin + header.packedBytes);
  if (packed.length !== header.packedBytes) throw broken('it is cut off');
  if (header.method === stored) return fitting(packed, bytesMax);
  if (header.method !== deflated) throw broken('it is compressed in an unusual way');
  return inflated(packed, bytesMax);
}

function inflated(packed: Buffer, bytesMax: number): Buffer {
  try {
    // An import would load it in every executor.
    const { inflateRawSync } = process.getBuiltinModule('node:zlib');
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, bytesMax) });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    throw code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge() : broken('an entry does not unpack');
  }
}

function fitting(bytes: Buffer, bytesMax: number): Buffer {
  if (bytes.length > bytesMax) throw tooLarge();
  return bytes;
}

function tooLarge(): Error {
  return new Error('The document unpacks to more than is allowed');
}

function broken(how: string): Error {
  return new Error(`The document is damaged: as a ZIP archive, ${how}`);
}
