/**
 * The files that an output names, as blocks of a result: pictures and sound, texts and other bytes as resources. What is
 * large is a link to the file, so that a result stays within what clients read. So is a file that the job has not made, for a
 * caller that may not read files.
 */
import { buffer } from 'node:stream/consumers';
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { Config } from '../../core/config/config.ts';
import type { FileRow, Files } from '../../core/files/files.ts';
import { filesNamedIn } from '../../core/files/references.ts';
import { mayReadFiles } from '../../core/jobs/execute.ts';
import type { Caller } from '../../kernel/caller.ts';
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
  readonly #config: Config;

  constructor(files: Files, config: Config) {
    this.#files = files;
    this.#config = config;
  }

  /** A block for each file that the output names and the job may use, by the id of the file. */
  async blocksOf(
    caller: Caller,
    { job_id, output, user_id }: EndedJob,
  ): Promise<Map<string, Block>> {
    const blocks = new Map<string, Block>();
    const ids = filesNamedIn(output);
    if (ids.length === 0) return blocks;
    const rows = await this.#files.usable(caller.organizationId, user_id, ids);
    const mayReadAll = mayReadFiles(this.#config, caller);
    let left = resultBytesMax;
    for (const id of ids) {
      const row = rows.get(id);
      if (row === undefined) continue;
      const size = Number(row.bytes);
      const mayRead = mayReadAll || row.job_id === job_id;
      const isWhole = mayRead && size <= Math.min(blockBytesMax, left);
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
    return `${this.#config.publicUrl ?? ''}/api/files/${id}/content`;
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
