/**
 * Loads skills from modules and from folders with a SKILL.md. Imports the modules of the given directories
 * one after the other and takes each default export as a skill; turns each SKILL.md into a skill. A module
 * that does not load, has an invalid field or repeats another skill's (category, name, version) ends the
 * load with one sentence that names it. Runs the modules' top-level code, so it belongs in an executor and never in a
 * process that serves HTTP or owns the database.
 */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SkillDefinition } from '../definition.ts';
import {
  completeFacts,
  type DefinitionFault,
  definitionFault,
  type SkillFacts,
} from '../fields.ts';
import { ownSchemasFault } from '../own-schemas.ts';
import { findSkillFiles, isSkillMd } from './find-modules.ts';
import { importFault, lineIn, SourceWatch } from './import-fault.ts';
import { isInstalled } from './installation.ts';
import { SkillLoadError } from './load-error.ts';
import type { ModuleGraph } from './module-graph.ts';
import type { SnapshotRecorder } from './snapshot.ts';

/** A skill without its code and with defaults filled in, as other processes get it. */
export interface LoadedSkill extends Required<SkillFacts> {
  /** `category/version/name`. */
  readonly key: string;
  /** Absolute path of the module, or of the SKILL.md. */
  readonly file: string;
  /** Absolute path of the folder of a SKILL.md skill; null for a module. */
  readonly folder: string | null;
  /** Digest of its code and of what that has imported; null for a skill of the platform itself. */
  readonly code: string | null;
}

/** A skill with its code. */
export interface SkillModule {
  readonly skill: LoadedSkill;
  readonly run: SkillDefinition['run'];
}

interface LoadOptions {
  /** Whether to check the schemas of skills too. The first check loads the validator. */
  readonly checkSchemas?: boolean;
  /** Records the load, and knows the imports of its files. */
  readonly recorder?: SnapshotRecorder;
}

/** Parts of a skill that are not read from its file. */
interface SkillSource {
  /** Of a SKILL.md. */
  readonly bytes?: Buffer | undefined;
  /** Where a module is imported from. */
  readonly url?: string;
  /** Where the imports of the skill are recorded, for the digest of its code. */
  readonly graph?: ModuleGraph | undefined;
}

/** Loads all skills of `dirs`, in the order of their files. Throws SkillLoadError. */
export async function loadSkillModules(
  dirs: readonly string[],
  options: LoadOptions = {},
): Promise<SkillModule[]> {
  const loaded: SkillModule[] = [];
  const owners = new Map<string, string>();
  const { files, faults } = findSkillFiles(dirs);
  const [fault] = faults;
  if (fault !== undefined) throw fault.error;
  for (const file of files) loaded.push(await loadNext(file, owners, options));
  return loaded;
}

/**
 * Loads the skill of one of several files. `owners` has the file of each skill so far by its key, and gets this one.
 * Throws SkillLoadError.
 */
export async function loadNext(
  file: string,
  owners: Map<string, string>,
  { checkSchemas = false, recorder }: LoadOptions,
): Promise<SkillModule> {
  const bytes = isSkillMd(file) ? recorder?.read(file) : undefined;
  const module = await loadSkillModule(file, { bytes, graph: recorder?.graph });
  const { key } = module.skill;
  const owner = owners.get(key);
  if (owner !== undefined) {
    throw new SkillLoadError(file, `defines ${key}, which ${owner} defines already`);
  }
  if (checkSchemas) checkOwnSchemas(module.skill);
  owners.set(key, file);
  return module;
}

/** Loads the skill of one file. Throws SkillLoadError. */
export async function loadSkillModule(
  file: string,
  { bytes, url = pathToFileURL(file).href, graph }: SkillSource = {},
): Promise<SkillModule> {
  const value = isSkillMd(file) ? await importSkillMd(file, bytes) : await importDefault(file, url);
  const definition = asSkill(file, value);
  const code = graph === undefined || isInstalled(file) ? null : graph.codeOf(file);
  return { skill: describe(definition, file, code), run: definition.run.bind(definition) };
}

/** Imported at its first use, so that a process with modules only loads no YAML parser. */
async function importSkillMd(file: string, bytes: Buffer | undefined): Promise<unknown> {
  const { skillFromSkillMd } = await import('./skill-md-definition.ts');
  return skillFromSkillMd(file, bytes);
}

async function importDefault(file: string, url: string): Promise<unknown> {
  const sources = isInstalled(file) ? undefined : new SourceWatch();
  try {
    const module: { default?: unknown } = await import(url);
    return module.default;
  } catch (error) {
    sources?.stop();
    const fault = await importFault(error, file, sources?.last);
    throw new SkillLoadError(file, `cannot be loaded: ${fault}`);
  } finally {
    sources?.stop();
  }
}

function asSkill(file: string, value: unknown): SkillDefinition {
  const fault = definitionFault(value);
  if (fault === undefined) return value as SkillDefinition;
  throw loadError(file, fault);
}

function loadError(file: string, { field, message }: DefinitionFault): SkillLoadError {
  const line = isSkillMd(file) ? undefined : lineOf(file, field);
  return new SkillLoadError(file, line === undefined ? message : `${message} (line ${line})`);
}

/** The line of the field, or that of the definition where the field is missing; only if it is the only one. */
function lineOf(file: string, field: string | null): number | undefined {
  if (field === null) return undefined;
  const name = `["']?${RegExp.escape(field)}["']?\\s*`;
  const [atStart, within] = [RegExp(`^\\s*(?:async )?${name}[:(,]`), RegExp(`[{,]\\s*${name}:`)];
  return (
    lineIn(file, (line) => atStart.test(line)) ??
    lineIn(file, (line) => within.test(line)) ??
    lineIn(file, (line) => line.startsWith('export default '))
  );
}

function describe(definition: SkillDefinition, file: string, code: string | null): LoadedSkill {
  const { category, name, version } = definition;
  return {
    key: `${category}/${version}/${name}`,
    ...completeFacts(definition),
    file,
    folder: isSkillMd(file) ? dirname(file) : null,
    code,
  };
}

function checkOwnSchemas(skill: LoadedSkill): void {
  const fault = ownSchemasFault(skill);
  if (fault !== undefined) throw loadError(skill.file, fault);
}
