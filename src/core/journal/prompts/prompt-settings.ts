/**
 * Whether prompts of organizations are kept, for how long and how many bytes of them: as the administrator has set it for the
 * organization, else as the platform is configured. Each process keeps the settings in memory; the processes of a cluster
 * read them again every second.
 */
import { isOrganization } from '../../../adapters/database/organizations.ts';
import { dayMs } from '../../../kernel/clock.ts';
import { notFound } from '../../../kernel/errors.ts';
import type { Context } from '../../context/context.ts';
import {
  findSettings,
  listSettings,
  type PromptSettingsRow,
  putSettings,
} from './prompt-settings.store.ts';
import { bytesKept, expirePrompts, listExpiredJobs, listTotals } from './prompts.store.ts';

/** Whose prompts are kept: of no agent, of those with `keep_prompts`, of all. */
export const promptKeeping = ['off', 'agents', 'all'] as const;

/** What an organization has of its own; null follows the platform. */
export type OwnPromptSettings = Omit<PromptSettingsRow, 'organization_id'>;

const mib = 1024 * 1024;
/** Jobs whose prompts are removed in one transaction. */
const jobsMax = 50;

export class PromptSettings {
  readonly #context: Context;
  #byOrganization: ReadonlyMap<string, OwnPromptSettings> = new Map();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Reads the settings of all organizations that have some. */
  async refresh(): Promise<void> {
    const rows = await listSettings(this.#context.database.read);
    this.#byOrganization = new Map(
      rows.map(({ organization_id, ...own }) => [organization_id, own]),
    );
  }

  /** What holds for an organization. */
  of(organizationId: string) {
    const own = this.#byOrganization.get(organizationId);
    const { keepPrompts, promptRetentionDays, promptsMaxMb } = this.#context.config;
    return {
      keep: own?.keep ?? keepPrompts,
      retentionDays: own?.retention_days ?? promptRetentionDays,
      maxBytes: (own?.max_mb ?? promptsMaxMb) * mib,
    };
  }

  /** Whether the prompts of an agent are kept. */
  keeps({ organization_id, keep_prompts }: { organization_id: string; keep_prompts: number }) {
    const { keep } = this.of(organization_id);
    return keep === 'all' || (keep === 'agents' && keep_prompts === 1);
  }

  /** The settings of an organization and what holds, or `404 not_found`. */
  async find(organizationId: string) {
    const { read } = this.#context.database;
    if (!(await isOrganization(read, organizationId))) throw notFound('Organization');
    await this.refresh();
    const own = (await findSettings(read, organizationId)) ?? nothingOwn;
    const { keep, retentionDays, maxBytes } = this.of(organizationId);
    return {
      organization_id: organizationId,
      ...own,
      applied: { keep, retention_days: retentionDays, max_mb: maxBytes / mib },
      kept_bytes: await bytesKept(read, organizationId),
    };
  }

  /** Sets the given ones. */
  async set(organizationId: string, given: Partial<OwnPromptSettings>) {
    await this.#context.database.write(async (tx) => {
      const before = (await findSettings(tx, organizationId)) ?? nothingOwn;
      await putSettings(tx, { organization_id: organizationId, ...before, ...given });
    });
    return this.find(organizationId);
  }

  /** Removes the texts of jobs whose last prompt is older than the organization keeps them; how many jobs. */
  async expire(): Promise<number> {
    const { database, clock } = this.#context;
    let removed = 0;
    for (const { organization_id } of await listTotals(database.read)) {
      const before = clock.now() - this.of(organization_id).retentionDays * dayMs;
      for (let found = jobsMax; found === jobsMax; removed += found) {
        found = await database.write(async (tx) => {
          const jobs = await listExpiredJobs(tx, organization_id, before, jobsMax);
          await expirePrompts(tx, jobs);
          return jobs.length;
        });
      }
    }
    return removed;
  }
}

const nothingOwn: OwnPromptSettings = { keep: null, retention_days: null, max_mb: null };
