/** Valid and invalid ZIP archives. */

import { crc32, deflateRawSync } from 'node:zlib';

export interface FixtureEntry {
  readonly name: string;
  readonly content: string | Buffer;
  readonly method?: 'stored' | 'deflated';
  readonly flags?: number;
  /** The unpacked size that the archive claims. */
  readonly claimedBytes?: number;
}

/** A ZIP archive of these entries. */
export function archiveOf(entries: readonly FixtureEntry[]): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let position = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    const content = Buffer.from(entry.content);
    const isStored = entry.method === 'stored';
    const packed = isStored ? content : deflateRawSync(content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE((entry.flags ?? 0) | 0x800, 2);
    common.writeUInt16LE(isStored ? 0 : 8, 4);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(entry.claimedBytes ?? content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name, packed]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(position, 10);
    const versions = Buffer.from([20, 0]);
    directory.push(
      Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), versions, common, place, name]),
    );
    locals.push(local);
    position += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(position, 16);
  return Buffer.concat([...locals, listed, end]);
}
