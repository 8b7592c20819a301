/**
 * The files that an output names, as blocks of a result: pictures and sound, texts and other bytes as resources. What is
 * large is a link to the file, so that a result stays within what clients read.
 */
import { buffer } from 'node:stream/consumers';
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { FileRow, Files } from '../../core/files/files.ts';
import { filesNamedIn } from '../../core/files/references.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { isObject } from '../../kernel/json.ts';
import { isPicture, isTextType } from '../../kernel/media-type.ts';
import type { EndedJob } from './results.ts';

/** Bytes of a file in a block, and of all files in one result. */
const blockBytesMax = 1024 * 1024;
const resultBytesMax = 4 * 1024 * 1024;

export type Block = CallToolResult['content'][number];

/** Reads the files of results. */
export class ResultFiles {
  readonly #files: Files;
  readonly #publicUrl: string | null;

  constructor(files: Files, publicUrl: string | null) {
    this.#files = files;
    this.#publicUrl = publicUrl;
  }

  /** A block for each file that the output names and the job may use, by the id of the file. */
  async blocksOf(
    organizationId: string,
    { output, user_id }: EndedJob,
  ): Promise<Map<string, Block>> {
    const blocks = new Map<string, Block>();
    const ids = filesNamedIn(output);
    if (ids.length === 0) return blocks;
    const rows = await this.#files.usable(organizationId, user_id, ids);
    let left = resultBytesMax;
    for (const id of ids) {
      const row = rows.get(id);
      if (row === undefined) continue;
      const size = Number(row.bytes);
      const isWhole = size <= Math.min(blockBytesMax, left);
      if (isWhole) left -= size;
      blocks.set(id, isWhole ? await this.#blockOf(row) : this.#linkTo(row));
    }
    return blocks;
  }

  async #blockOf(row: FileRow): Promise<Block> {
    try {
      const bytes = await buffer(await this.#files.open(row));
      const { media_type: mimeType } = row;
      const data = bytes.toString('base64');
      if (isPicture(mimeType)) return { type: 'image', data, mimeType };
      if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType };
      const about = { uri: this.#addressOf(row), mimeType };
      const isText = isTextType(mimeType);
      const resource = isText
        ? { ...about, text: bytes.toString('utf8') }
        : { ...about, blob: data };
      return { type: 'resource', resource };
    } catch (error) {
      // Deleted meanwhile, or the storage cannot be reached.
      if (error instanceof PlatformError) return this.#linkTo(row);
      throw error;
    }
  }

  #linkTo(row: FileRow): Block {
    const { name, media_type: mimeType, bytes } = row;
    return {
      type: 'resource_link',
      uri: this.#addressOf(row),
      name,
      mimeType,
      size: Number(bytes),
    };
  }

  #addressOf({ id }: FileRow): string {
    return `${this.#publicUrl ?? ''}/api/files/${id}/content`;
  }
}

/** The blocks with those of files in the place of files. */
export function withFileBlocks(
  content: readonly unknown[],
  files: ReadonlyMap<string, Block>,
): Block[] {
  return content.map((block): Block => {
    if (!isObject(block) || block['type'] !== 'file') return block as Block;
    return files.get(`${block['id']}`) ?? { type: 'text', text: JSON.stringify(block) };
  });
}
