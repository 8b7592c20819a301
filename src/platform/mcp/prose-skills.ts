/**
 * The extension Skills (SEP-2640): skills that are a folder with a SKILL.md are listed and read as they are, with the
 * digest of each file, for a client whose own model is to follow them. A key sees those that it may run.
 */
import { SkillsExtension, skillEntry } from '@modelcontextprotocol/server/ext/skills';
import type { Skill, SkillRegistry } from '../../core/skills/registry.ts';
import { skillKey } from '../../core/skills/registry.ts';
import { readSkillFolder } from '../../core/skills/sources/skill-folder-bytes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { hasScopes } from '../../kernel/caller.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import { createShortCache } from '../../kernel/short-cache.ts';
import { invalidParams } from './protocol-errors.ts';
import { senderOf } from './server.ts';

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

export interface ProseSkillsDeps {
  readonly skills: Pick<SkillRegistry, 'list'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** The folders of skills, by `category/version/name`; without those that have none here. */
  folders(): Promise<ReadonlyMap<string, string>>;
}

interface Served {
  readonly entry: Entry;
  readonly files: Files;
}

export function createProseSkills(deps: ProseSkillsDeps): SkillsExtension {
  const cache = createShortCache<Served | null>(deps.clock, keptMs, keptMax);
  const served = async (skill: Skill) => {
    const key = keyOf(skill);
    const known = cache.get(key);
    return known === undefined ? cache.read(key, () => load(deps, skill)) : known;
  };
  return new SkillsExtension({
    cacheHint: { ttlMs: keptMs, cacheScope: 'private' },
    onWarning: ({ path, message }) => deps.log.warn({ path }, `a skill is not served: ${message}`),
    source: {
      async list({ cursor }, ctx) {
        const own = await skillsOf(deps, senderOf(ctx.http?.authInfo).caller);
        const after = own.findIndex((skill) => pathOf(skill) === cursor) + 1;
        const page = own.slice(after, after + pageSize);
        if (cursor !== undefined && after === 0) {
          throw invalidParams('Invalid cursor: begin again without one');
        }
        const entries: Entry[] = [];
        // One after the other, so that the files of one folder are in memory beside those that are kept.
        for (const skill of page) entries.push(...[(await served(skill))?.entry ?? []].flat());
        const last = page.at(-1);
        const isMore = last !== undefined && after + pageSize < own.length;
        return {
          skills: entries,
          ...(isMore ? { nextCursor: pathOf(last) } : {}),
        };
      },
      async get(uri, ctx) {
        const found = await skillAt(deps, senderOf(ctx.http?.authInfo).caller, uri);
        return found?.file === main ? (await served(found.skill))?.entry : undefined;
      },
      async read(uri, ctx) {
        const found = await skillAt(deps, senderOf(ctx.http?.authInfo).caller, uri);
        const bytes = found && (await served(found.skill))?.files[found.file];
        return bytes && contentOf(found.file, bytes);
      },
      async listResources(ctx) {
        const own = await skillsOf(deps, senderOf(ctx.http?.authInfo).caller);
        return own.slice(0, resourcesMax).map((skill) => ({
          uri: `${scheme}${pathOf(skill)}/${main}`,
          name: skill.name,
          title: skill.displayName,
          description: skill.description,
          mimeType: 'text/markdown',
        }));
      },
    },
  });
}

/** The newest version of each prose skill that the caller may run. */
async function skillsOf(
  { skills, folders }: ProseSkillsDeps,
  { organizationId, scopes }: Caller,
): Promise<Skill[]> {
  const newest = new Map<string, Skill>();
  const found = await folders();
  for (const skill of skills.list(organizationId)) {
    if (!found.has(keyOf(skill)) || !hasScopes(scopes, skill.requiredScopes)) continue;
    newest.set(pathOf(skill), skill);
  }
  return [...newest.values()];
}

async function skillAt(
  deps: ProseSkillsDeps,
  caller: Caller,
  uri: string,
): Promise<{ skill: Skill; file: string } | undefined> {
  if (!uri.startsWith(scheme)) return undefined;
  const path = decoded(uri.slice(scheme.length));
  const [category = '', name = '', ...file] = path?.split('/') ?? [];
  const skill = (await skillsOf(deps, caller)).find(
    (one) => one.category === category && one.name === name,
  );
  return skill && { skill, file: file.join('/') };
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** The entry of a skill and its files; null for a folder that the extension does not allow. */
async function load(deps: ProseSkillsDeps, skill: Skill): Promise<Served | null> {
  const folder = (await deps.folders()).get(keyOf(skill));
  const files = folder === undefined ? undefined : await readSkillFolder(folder);
  if (files === undefined) return null;
  try {
    return { entry: await skillEntry(pathOf(skill), files), files };
  } catch (err) {
    deps.log.warn({ err, skill: keyOf(skill) }, 'a SKILL.md is not served to MCP clients');
    return null;
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
