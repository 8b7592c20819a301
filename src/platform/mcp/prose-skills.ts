/**
 * The extension Skills (SEP-2640): skills that are a folder with a SKILL.md are listed and read as they are, with the
 * digest of each file, for a client whose own model is to follow them. A key sees those that it may run.
 */
import {
  type SkillSource,
  SkillsExtension,
  skillEntry,
} from '@modelcontextprotocol/server/ext/skills';
import type { Context } from '../../core/context/context.ts';
import { type Skill, type SkillRegistry, skillKey } from '../../core/skills/registry.ts';
import { readSkillFolder } from '../../core/skills/sources/skill-folder-bytes.ts';
import { type Caller, hasScopes } from '../../kernel/caller.ts';
import type { Logger } from '../../kernel/log.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import type { ProseFolders } from './prose-folders.ts';
import { invalidParams } from './protocol-errors.ts';
import { senderOf } from './sender.ts';

type Entry = Awaited<ReturnType<typeof skillEntry>>;
type Files = Readonly<Record<string, Uint8Array>>;

/** How long the files of a folder are kept, so that a file that is read has the digest that was listed. */
const keptMs = 10_000;
/** Folders whose files are kept; each has at most 4 MiB. */
const keptMax = 20;
/** Skills of a page: the files of each are read for their digests. */
const pageSize = 20;
/** Resources of the one page that the SDK has; their files are not read. */
const resourcesMax = 1_000;
const scheme = 'skill://';
const main = 'SKILL.md';

interface Served {
  readonly entry: Entry;
  readonly files: Files;
}

type Ctx = Parameters<SkillSource['list']>[1];

/** The extension, for the servers of all requests. */
export function proseSkills(
  context: Context,
  skills: SkillRegistry,
  folders: ProseFolders,
): SkillsExtension {
  const { log } = context;
  return new SkillsExtension({
    cacheHint: { ttlMs: keptMs, cacheScope: 'private' },
    onWarning: ({ path, message }) => log.warn({ path }, `a skill is not served: ${message}`),
    source: new ProseSkills(context, skills, folders),
  });
}

/** What the SDK reads the skills from. */
class ProseSkills implements SkillSource {
  readonly #log: Logger;
  readonly #skills: SkillRegistry;
  readonly #folders: ProseFolders;
  readonly #cache: ShortCache<Served | null>;

  constructor({ clock, log }: Context, skills: SkillRegistry, folders: ProseFolders) {
    this.#log = log;
    this.#skills = skills;
    this.#folders = folders;
    this.#cache = new ShortCache(clock, keptMs, keptMax);
  }

  async list({ cursor }: { cursor?: string }, ctx: Ctx) {
    const own = await this.#skillsOf(senderOf(ctx.http?.authInfo).caller);
    const after = own.findIndex((skill) => pathOf(skill) === cursor) + 1;
    const page = own.slice(after, after + pageSize);
    if (cursor !== undefined && after === 0) {
      throw invalidParams('Invalid cursor: begin again without one');
    }
    const entries: Entry[] = [];
    // One after the other, so that the files of one folder are in memory beside those that are kept.
    for (const skill of page) entries.push(...[(await this.#served(skill))?.entry ?? []].flat());
    const last = page.at(-1);
    const isMore = last !== undefined && after + pageSize < own.length;
    return { skills: entries, ...(isMore ? { nextCursor: pathOf(last) } : {}) };
  }

  async get(uri: string, ctx: Ctx) {
    const found = await this.#skillAt(senderOf(ctx.http?.authInfo).caller, uri);
    return found?.file === main ? (await this.#served(found.skill))?.entry : undefined;
  }

  async read(uri: string, ctx: Ctx) {
    const found = await this.#skillAt(senderOf(ctx.http?.authInfo).caller, uri);
    const bytes = found && (await this.#served(found.skill))?.files[found.file];
    return bytes && contentOf(found.file, bytes);
  }

  async listResources(ctx: Ctx) {
    const own = await this.#skillsOf(senderOf(ctx.http?.authInfo).caller);
    return own.slice(0, resourcesMax).map((skill) => ({
      uri: `${scheme}${pathOf(skill)}/${main}`,
      name: skill.name,
      title: skill.displayName,
      description: skill.description,
      mimeType: 'text/markdown',
    }));
  }

  /** The newest version of each prose skill that the caller may run. */
  async #skillsOf({ organizationId, scopes }: Caller): Promise<Skill[]> {
    const newest = new Map<string, Skill>();
    const folders = await this.#folders.find();
    for (const skill of this.#skills.list(organizationId)) {
      if (!folders.has(keyOf(skill)) || !hasScopes(scopes, skill.requiredScopes)) continue;
      newest.set(pathOf(skill), skill);
    }
    return [...newest.values()];
  }

  async #skillAt(caller: Caller, uri: string): Promise<{ skill: Skill; file: string } | undefined> {
    if (!uri.startsWith(scheme)) return undefined;
    const path = decoded(uri.slice(scheme.length));
    const [category = '', name = '', ...file] = path?.split('/') ?? [];
    const skill = (await this.#skillsOf(caller)).find(
      (one) => one.category === category && one.name === name,
    );
    return skill && { skill, file: file.join('/') };
  }

  async #served(skill: Skill): Promise<Served | null> {
    const key = keyOf(skill);
    const known = this.#cache.get(key);
    return known === undefined ? this.#cache.read(key, () => this.#load(skill)) : known;
  }

  /** The entry of a skill and its files; null for a folder that the extension does not allow. */
  async #load(skill: Skill): Promise<Served | null> {
    const folder = (await this.#folders.find()).get(keyOf(skill));
    const files = folder === undefined ? undefined : await readSkillFolder(folder);
    if (files === undefined) return null;
    try {
      return { entry: await skillEntry(pathOf(skill), files), files };
    } catch (err) {
      this.#log.warn({ err, skill: keyOf(skill) }, 'a SKILL.md is not served to MCP clients');
      return null;
    }
  }
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

const keyOf = ({ category, version, name }: Skill) => skillKey(category, version, name);
const pathOf = ({ category, name }: Skill) => `${category}/${name}`;

function contentOf(file: string, bytes: Uint8Array) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, mimeType: file.endsWith('.md') ? 'text/markdown' : 'text/plain' };
  } catch {
    return { bytes, mimeType: 'application/octet-stream' };
  }
}
