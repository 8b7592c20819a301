/**
 * The settings that skills declare: an organization's own values, stored encrypted, before those of the
 * environment and the defaults of the definition. A value belongs to all versions of its skill. Values of
 * secrets are decrypted only for runs, and never returned. A change takes effect at once in this process,
 * and within a second in every other one.
 */
import type { Database } from '../../adapters/database/database.ts';
import {
  decryptValue,
  encryptValue,
  settingContext,
} from '../../adapters/database/sealed-values.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import type { Cipher } from '../../kernel/encryption.ts';
import { type Issue, invalidIn } from '../../kernel/errors.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import type { Context } from '../context/context.ts';
import type { SkillSetting } from './definition.ts';
import { type Skill, skillKey } from './registry.ts';
import {
  deleteSettings,
  findSettings,
  listSettings,
  replaceSettings,
  type SettingRow,
  type SettingsOwner,
} from './settings.store.ts';
import { isRequired, secretCharsMin, valueBytesMax } from './settings-rules.ts';

/** Values that are checked when the platform starts. */
const checkedMax = 1_000;
/** How long values are cached. */
const cacheMs = 1_000;
/** Skills of organizations in the cache, encrypted as they are stored; the oldest is evicted first. */
const cachedMax = 200;

type ConfiguredSkill = Pick<Skill, 'id' | 'category' | 'version' | 'name' | 'config'>;

/** Where the value of a setting comes from. */
export type SettingSource = 'organization' | 'environment' | 'default' | 'missing';

/** A setting as the API shows it. */
interface SettingView {
  readonly name: string;
  readonly description: string;
  readonly secret: boolean;
  readonly required: boolean;
  readonly default: string | null;
  readonly source: SettingSource;
  /** The organization's value or the default; null for a secret and for a value of the environment. */
  readonly value: string | null;
  readonly updated_at: string | null;
  /** Why the stored value cannot be used; null when it can. */
  readonly fault: string | null;
}

/** The values of a run, and those of them that must not be shown. */
export interface RunSettings {
  readonly values: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
}

/** Why a run cannot start: a sentence that names the settings and where to set them. */
export interface MissingSettings {
  readonly missing: string;
}

/** The settings of skills of all organizations. */
export class SkillSettings {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #cipher: Cipher | null;
  /** The environment of the platform, without the platform's own settings. */
  readonly #environment: Readonly<Record<string, string>>;
  readonly #cache: ShortCache<readonly SettingRow[]>;

  /** `cipher` is null without an encryption key: values can be neither stored nor used then. */
  constructor({ config, database, clock }: Context, cipher: Cipher | null) {
    this.#database = database;
    this.#clock = clock;
    this.#cipher = cipher;
    this.#environment = config.skillEnvironment;
    this.#cache = new ShortCache(clock, cacheMs, cachedMax);
  }

  /** The settings of the skill for an organization, in the order of the definition. */
  async show(organizationId: string, skill: ConfiguredSkill): Promise<SettingView[]> {
    const rows = await findSettings(this.#database.read, ownerOf(organizationId, skill));
    return Object.entries(skill.config).map(([name, setting]) =>
      this.#view(name, setting, rowOf(rows, name)),
    );
  }

  /**
   * Sets the given values, deletes those that are null, and keeps all others. Throws `400` for a setting that the
   * skill does not declare and for an unusable value, `409` without a cipher.
   */
  async change(
    organizationId: string,
    skill: ConfiguredSkill,
    values: Readonly<Record<string, string | null>>,
  ): Promise<SettingView[]> {
    refuseMalformed(skill, values);
    const owner = ownerOf(organizationId, skill);
    const now = this.#clock.now();
    const rows: SettingRow[] = [];
    const cleared: string[] = [];
    for (const [name, value] of Object.entries(values)) {
      if (value === null) cleared.push(name);
      else {
        const secret = Number(isSecret(skill.config[name]));
        const named = { ...owner, name, secret };
        const context = settingContext(named);
        const sealed = encryptValue(this.#cipher, value, context, 'Values of settings');
        rows.push({ ...named, value: sealed, created_at: now, updated_at: now });
      }
    }
    await this.#database.write(async (tx) => {
      if (cleared.length > 0) await deleteSettings(tx, owner, cleared);
      if (rows.length > 0) await replaceSettings(tx, rows);
    });
    this.#cache.forget(keyOf(owner));
    return this.show(organizationId, skill);
  }

  /** Deletes all values of an organization for a skill, those of all versions. */
  async clear(organizationId: string, skill: ConfiguredSkill): Promise<void> {
    const owner = ownerOf(organizationId, skill);
    await this.#database.write((tx) => deleteSettings(tx, owner));
    this.#cache.forget(keyOf(owner));
  }

  /** The values of `ctx.config` in a run of the skill for an organization, or why the run cannot start. */
  async forRun(
    organizationId: string,
    skill: ConfiguredSkill,
  ): Promise<RunSettings | MissingSettings> {
    const owner = ownerOf(organizationId, skill);
    const key = keyOf(owner);
    const rows =
      this.#cache.get(key) ??
      (await this.#cache.read(key, () => findSettings(this.#database.read, owner)));
    const values: Record<string, string> = {};
    const secrets: string[] = [];
    const missing: string[] = [];
    for (const [name, setting] of Object.entries(skill.config)) {
      const row = rowOf(rows, name);
      const found = this.#findValue(name, setting, row);
      if ('fault' in found) return { missing: unusable(skill, found.fault) };
      if (found.source === 'missing') {
        if (isRequired(setting)) missing.push(name);
        continue;
      }
      values[name] = found.value;
      if (isSecret(setting) || row?.secret === 1) secrets.push(found.value);
    }
    if (missing.length > 0) return { missing: unset(skill, missing) };
    return { values, secrets };
  }

  /** Counts the stored values, of the first 1,000, that cannot be decrypted. */
  async countUnusable(): Promise<number> {
    const rows = await listSettings(this.#database.read, checkedMax);
    return rows.filter((row) => 'fault' in decrypted(this.#cipher, row)).length;
  }

  #findValue(name: string, setting: SkillSetting, row: SettingRow | undefined): Found {
    if (row !== undefined) return { source: 'organization', ...decrypted(this.#cipher, row) };
    const given = this.#environment[name];
    if (given !== undefined && isUsable(setting, given)) {
      return { source: 'environment', value: given };
    }
    if (setting.default !== undefined) return { source: 'default', value: setting.default };
    return { source: 'missing' };
  }

  #view(name: string, setting: SkillSetting, row: SettingRow | undefined): SettingView {
    const found = this.#findValue(name, setting, row);
    const isShown =
      'value' in found && found.source !== 'environment' && !isSecret(setting) && row?.secret !== 1;
    return {
      name,
      description: setting.description,
      secret: isSecret(setting),
      required: isRequired(setting),
      default: setting.default ?? null,
      source: found.source,
      value: isShown ? found.value : null,
      updated_at: row === undefined ? null : timestamp(row.updated_at),
      fault: 'fault' in found ? found.fault : null,
    };
  }
}

type Found =
  | { readonly source: Exclude<SettingSource, 'missing'>; readonly value: string }
  | { readonly source: 'missing' }
  | { readonly source: 'organization'; readonly fault: string };

function decrypted(
  cipher: Cipher | null,
  row: SettingRow,
): { readonly value: string } | { readonly fault: string } {
  const sealed = { text: row.value, context: settingContext(row) };
  return decryptValue(cipher, sealed, `value of ${row.name}`);
}

/** The checks that a JSON Schema cannot express. */
function refuseMalformed(
  { config, ...skill }: ConfiguredSkill,
  values: Readonly<Record<string, string | null>>,
): void {
  const issues: Issue[] = [];
  for (const [field, value] of Object.entries(values)) {
    const setting = Object.hasOwn(config, field) ? config[field] : undefined;
    if (setting === undefined) {
      const names = Object.keys(config).join(', ') || 'none';
      const issue = `is no setting of ${skillKey(skill.category, skill.version, skill.name)}, which declares: ${names}`;
      issues.push({ field, issue });
    } else if (value !== null && Buffer.byteLength(value) > valueBytesMax) {
      issues.push({ field, issue: `must have at most ${valueBytesMax} bytes` });
    } else if (value !== null && !isUsable(setting, value)) {
      issues.push({ field, issue: `must have at least ${secretCharsMin} characters, as a secret` });
    }
  }
  if (issues.length > 0) throw invalidIn(issues);
}

/** A shorter secret could not be removed from the output of runs. */
function isUsable(setting: SkillSetting, value: string): boolean {
  return value.length >= (isSecret(setting) ? secretCharsMin : 1);
}

function isSecret(setting: SkillSetting | undefined): boolean {
  return setting?.secret === true;
}

function unset(skill: ConfiguredSkill, names: readonly string[]): string {
  const what = names.length === 1 ? 'the setting' : 'the settings';
  const which = names.length === 1 ? 'which has no value' : 'which have no value';
  return `${labelOf(skill)} needs ${what} ${names.join(', ')}, ${which}: ${howToSet(skill)}`;
}

function unusable(skill: ConfiguredSkill, fault: string): string {
  return `${labelOf(skill)} cannot start. ${fault}: ${howToSet(skill)}`;
}

const labelOf = ({ category, version, name }: ConfiguredSkill) =>
  `The skill ${skillKey(category, version, name)}`;

const howToSet = ({ id }: ConfiguredSkill) =>
  `set it on the page of the skill in the console or with PUT /api/skills/${id}/config, or in the environment of the platform`;

const rowOf = (rows: readonly SettingRow[], name: string) => rows.find((row) => row.name === name);

function ownerOf(organizationId: string, { category, name }: ConfiguredSkill): SettingsOwner {
  return { organization_id: organizationId, category, skill_name: name };
}

const keyOf = ({ organization_id, category, skill_name }: SettingsOwner) =>
  `${organization_id}/${category}/${skill_name}`;
